package vsphere

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

func functionChecks() []steps.Check {
	dryRun := "the guest's API server, by dry run"
	return []steps.Check{
		{
			Name: "rwx-gets-class", Title: "A shared claim gets the class of shared volumes", On: steps.Local,
			From: dryRun, When: sharedByDefault, FixedBy: "policy",
			Needs: []string{"signed-in", "one-mutator"},
			Why: "Kale's and the pipelines' claims depend on it: with the default class of a Tanzu guest they stay Pending " +
				"indefinitely.",
			References: []string{mutatorSource, mutatingPolicySource}, Run: rwxGetsClass,
		},
		{
			Name: "rwo-keeps-class", Title: "A single-node claim keeps its class", On: steps.Local, From: dryRun,
			Needs:      []string{"signed-in"},
			Why:        "Databases and notebooks belong on the guest's own storage, not on NFS.",
			References: []string{mutatorSource}, Run: rwoKeepsClass,
		},
		{
			Name: "static-keeps", Title: "A claim for an existing volume keeps its class", On: steps.Local,
			From: dryRun, Needs: []string{"signed-in"},
			Why: "Class \"\" or a volume name requests an existing volume; with another class, as set by the published " +
				"webhook, the claim never finds it.",
			References: []string{mutatorSource}, Run: staticKeeps,
		},
		{
			Name: "silent-failure", Title: "No claim is silently misplaced by a failed webhook", On: steps.Local,
			From: dryRun, When: usesWebhook, Needs: []string{"signed-in"},
			Why: "With failurePolicy Ignore, a webhook that is down or has an untrusted certificate is skipped: claims " +
				"silently get the default class.",
			References: []string{
				mutatorSource,
				"https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#failure-policy",
			}, Run: silentFailure,
		},
		{
			Name: "claims-pending", Title: "No shared claim is Pending on an unsuitable class", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "The class of a claim is immutable: older claims and their pods stay Pending until the claims " +
				"are recreated.",
			References: []string{"https://kubernetes.io/docs/concepts/storage/persistent-volumes/#reclaiming"},
			Run:        claimsPending,
		},
	}
}

// sharedByDefault reports whether claims without a class are expected to get the shared one, by
// any means.
func sharedByDefault(e steps.Env) bool {
	return exchanges(e) || e.Answers.Text("storage.source") == native || usuallyShared(e)
}

func sharedElsewhere(e steps.Env) bool { return e.Answers.Text("storage.source") != native }

// sharedClaims returns the claims that must get the shared class: one without a class, and one
// of each class that is replaced.
func sharedClaims(e steps.Env) []triedClaim {
	out := []triedClaim{{name: "without a class", mode: corev1.ReadWriteMany}}
	if exchanges(e) {
		for _, name := range e.Answers.List("mutation.replaces") {
			out = append(out, triedClaim{name: "of class " + name, mode: corev1.ReadWriteMany, class: &name})
		}
	}
	return out
}

// unconfigured is the class, without its quotes, that the published guide's extension sets if
// none is configured (src/main/resources/application.properties).
const unconfigured = "to-be-overridden"

func rwxGetsClass(ctx context.Context, e steps.Env) steps.Result {
	spaces, err := tryInEach(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	claims := sharedClaims(e)
	got := make([][]outcome, len(spaces))
	var looks []func() error
	for i, in := range spaces {
		looks = append(looks, func() (err error) { // the more profiles, the less often each is tested
			got[i], err = tryClaimsFor(ctx, e, claimSteady*time.Duration(len(spaces)), in, claims...)
			return err
		})
	}
	if err := check.Together(looks...); err != nil {
		return steps.Errored(err)
	}
	var tried, small, full []string
	var refused []outcome
	for i, in := range spaces {
		j := slices.IndexFunc(got[i], func(o outcome) bool { return check.OverLimit(o.refused) })
		switch {
		case i > 0 && j >= 0 && isTooSmall(got[i][j].refused):
			small = append(small, in) // proves nothing about the class
			continue
		case i > 0 && j >= 0:
			full, refused = append(full, in), append(refused, got[i][j])
			continue
		}
		for _, o := range got[i] {
			if r := hasClass(ctx, e, in, o); r.Status != steps.Pass {
				return r
			}
		}
		tried = append(tried, in)
	}
	var names []string
	for _, c := range claims {
		names = append(names, c.name)
	}
	passed := fmt.Sprintf("%s, in %s, for claims %s", sharedClassName(e), check.Some(tried), strings.Join(names, ", "))
	if len(small) > 0 {
		passed += ". Not tested in " + check.Some(small) + ", where a LimitRange allows no claim of 1Mi"
	}
	if len(full) > 0 {
		return underLimits(ctx, e, passed, refused, full)
	}
	return steps.Passed("%s", passed)
}

// hasClass judges one shared claim.
func hasClass(ctx context.Context, e steps.Env, in string, o outcome) steps.Result {
	switch {
	case o.refused != "":
		return steps.Failed(fmt.Sprintf("a shared claim %s is rejected in %s: %s", o.name, in, o.refused),
			refusedFix(ctx, e, in, o.refused))
	case strings.Contains(o.got, unconfigured):
		return steps.Failed(
			fmt.Sprintf("a shared claim %s gets class %s in %s, because the published guide's extension has no class configured",
				o.name, clean.Text(o.got), in),
			e.Kubectl()+" -n vsphere-extensions edit configmap vsphere-extensions-cm"+
				"    # vsphere-extensions.readwritemany-sc="+sharedClassName(e)+
				"; then rollout restart deployment vsphere-extensions")
	case o.got != sharedClassName(e):
		return steps.Failed(
			fmt.Sprintf("a shared claim %s gets %s in %s instead of %s", o.name, o.word(), in, sharedClassName(e)),
			mutationFix(e))
	}
	return steps.Passed("%s", sharedClassName(e))
}

// word describes the class that a claim got.
func (o outcome) word() string {
	switch {
	case !o.has:
		return "no class"
	case o.got == "":
		return "class \"\""
	}
	return clean.Text(o.got)
}

// mutationFix returns the fix if claims do not get their class. "" means the check's own action.
func mutationFix(e steps.Env) string {
	switch e.Answers.Text("mutation.method") {
	case byWebhook:
		return "carrick check " + e.LinkFile() +
			" --only extension-ready,extension-endpoints,extension-config,cert-bundle,webhook-rules" +
			"    # shows the cause; then " + e.ApplyStep("extension")
	case byKyverno:
		return "carrick export " + e.LinkFile() + " DIR, then apply its ClusterPolicy " + policyName
	case byNobody:
		return answer(e, "mutation.method", byPolicy)
	}
	return ""
}

// refusedFix explains how to find out what rejects a claim, and how to change it if the reason
// names it.
func refusedFix(ctx context.Context, e steps.Env, in, why string) string {
	if check.OverLimit(why) {
		if l, err := limitOf(ctx, e, in, why); err == nil && l.fix != "" {
			return l.fix
		}
	}
	if usesWebhook(e) {
		return mutationFix(e)
	}
	return fmt.Sprintf(
		"%s get mutatingadmissionpolicies,validatingadmissionpolicies,mutatingwebhookconfigurations,validatingwebhookconfigurations    # the reason names the one that rejects the claim; for a quota: %s -n %s get resourcequotas",
		e.Kubectl(), e.Kubectl(), in,
	)
}

func rwoKeepsClass(ctx context.Context, e steps.Env) steps.Result {
	in, err := tryIn(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	usual, err := e.Own.Text("default-class")
	if err != nil && !steps.IsAbsent(err) {
		return steps.Errored(err)
	}
	all := []triedClaim{{name: "without a class", mode: corev1.ReadWriteOnce}}
	if usual != "" {
		all = append(all, triedClaim{name: "of class " + usual, mode: corev1.ReadWriteOnce, class: &usual})
	}
	got, err := tryClaims(ctx, e, in, all...)
	if err != nil {
		return steps.Errored(err)
	}
	for _, o := range got {
		switch {
		case o.refused != "":
			return steps.Failed(fmt.Sprintf("a claim %s is rejected in %s: %s", o.name, in, o.refused),
				refusedFix(ctx, e, in, o.refused))
		case o.got != usual:
			return steps.Failed(
				fmt.Sprintf(
					"a single-node claim %s gets %s in %s instead of the default class %s", o.name, o.word(), in,
					cmp.Or(usual, "(none)"),
				),
				whoFix(e),
			)
		}
	}
	return steps.Passed("%s, in %s", cmp.Or(usual, "no class"), in)
}

// whoFix returns the command that finds out what changes claims that must stay unchanged.
func whoFix(e steps.Env) string {
	return "carrick check " + e.LinkFile() + " --only one-mutator,webhook-rules    # shows what changes claims; then " +
		e.ApplyStep("mutation")
}

func staticKeeps(ctx context.Context, e steps.Env) steps.Result {
	in, err := tryIn(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	none := ""
	all := []triedClaim{
		{name: "for many nodes", mode: corev1.ReadWriteMany, class: &none},
		{name: "for one node", mode: corev1.ReadWriteOnce, class: &none},
	}
	if from := e.Answers.List("mutation.replaces"); exchanges(e) && len(from) > 0 {
		all = append(
			all,
			triedClaim{name: "with a volume name", mode: corev1.ReadWriteMany, class: &from[0], volume: "carrick-preview"},
		)
	}
	got, err := tryClaims(ctx, e, in, all...)
	if err != nil {
		return steps.Errored(err)
	}
	for _, o := range got {
		asked := "\"\""
		if *o.class != "" {
			asked = clean.Text(*o.class)
		}
		switch {
		case o.refused != "":
			return steps.Failed(fmt.Sprintf("a claim of class %s %s is rejected in %s: %s", asked, o.name, in, o.refused),
				refusedFix(ctx, e, in, o.refused))
		case !o.has || o.got != *o.class:
			return steps.Failed(
				fmt.Sprintf(
					"a claim of class %s %s gets %s in %s, so it does not find its volume", asked, o.name,
					o.word(), in,
				),
				whoFix(e),
			)
		}
	}
	return steps.Passed("tested in %s", in)
}

func silentFailure(ctx context.Context, e steps.Env) steps.Result {
	all, err := mutators(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	i := slices.IndexFunc(all, func(m mutator) bool { return m.sure && m.by == byWebhook })
	if i < 0 {
		return steps.Skipped("no webhook sets the class of claims yet")
	}
	hook := all[i]
	if usuallyShared(e) {
		return steps.Skipped("%s is the default class, so claims get it even if %s does not answer",
			sharedClassName(e), hook)
	}
	in, err := tryIn(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	got, err := tryClaims(ctx, e, in, sharedClaims(e)[0])
	if err != nil {
		return steps.Errored(err)
	}
	meanwhile := "if it fails, claims are rejected until it answers again (failurePolicy Fail)"
	if hook.fail == failOpen {
		meanwhile = "if it fails, claims get the class that they request (failurePolicy Ignore), and this check fails"
	}
	switch o := got[0]; {
	case o.refused != "":
		return steps.Failed(fmt.Sprintf(
			"%s has failurePolicy %s, so claims in its namespaces are now rejected: %s",
			hook, hook.fail, o.refused), refusedFix(ctx, e, in, o.refused))
	case o.got != sharedClassName(e) && hook.fail == failOpen:
		return steps.Failed(
			fmt.Sprintf(
				"%s is silently skipped (failurePolicy Ignore). Shared claims now get %s and stay Pending", hook,
				o.word(),
			),
			mutationFix(e),
		)
	case o.got != sharedClassName(e):
		return steps.Failed(
			fmt.Sprintf(
				"%s has failurePolicy %s, but shared claims are admitted with %s. It sets the wrong class or is not called",
				hook, hook.fail, o.word(),
			),
			mutationFix(e),
		)
	}
	return steps.Passed("%s is called and answers; %s", hook, meanwhile)
}
