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
	dryRun := "the guest's API server, without keeping anything"
	return []steps.Check{
		{
			Name: "rwx-gets-class", Title: "a claim that many pods write to gets the class for that", On: steps.Local,
			From: dryRun, When: sharedByDefault, FixedBy: "policy",
			Needs: []string{"signed-in", "one-mutator"},
			Why: "it is what Kale's and the pipelines' claims lean on: with the default class of a Tanzu guest they " +
				"stay Pending for ever",
			References: []string{mutatorSource, mutatingPolicySource}, Run: rwxGetsClass,
		},
		{
			Name: "rwo-keeps-class", Title: "a claim that one node writes to keeps its class", On: steps.Local, From: dryRun,
			Needs:      []string{"signed-in"},
			Why:        "databases and notebooks belong on the guest's own storage, and not on NFS",
			References: []string{mutatorSource}, Run: rwoKeepsClass,
		},
		{
			Name: "static-keeps", Title: "a claim for a volume that somebody has made keeps its class", On: steps.Local,
			From: dryRun, Needs: []string{"signed-in"},
			Why: "\"\" asks for a volume that is there and for no provisioner, as does a claim that names its volume; " +
				"the published guide's webhook gives both the shared class, and then they never find it: the NFS provisioner's " +
				"own claim is one of those, and what a backup brings back",
			References: []string{mutatorSource}, Run: staticKeeps,
		},
		{
			Name: "silent-failure", Title: "a webhook that does not answer misplaces no claim without a word", On: steps.Local,
			From: dryRun, When: usesWebhook, Needs: []string{"signed-in"},
			Why: "with failurePolicy Ignore a webhook that is down, or shows a certificate that its caBundle does not " +
				"prove, is passed over: claims get the default class, and nobody is told",
			References: []string{
				mutatorSource,
				"https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#failure-policy",
			}, Run: silentFailure,
		},
		{
			Name: "claims-pending", Title: "no shared claim waits for a class that can't serve it", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "the class of a claim can't be changed: those that were made before stay Pending, and their pods with " +
				"them, until somebody makes them anew",
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
		for _, name := range e.Answers.List("mutation.from") {
			out = append(out, triedClaim{name: "of the class " + name, mode: corev1.ReadWriteMany, class: &name})
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
		looks = append(looks, func() (err error) { // the more profiles, the less often each is tried
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
	passed := fmt.Sprintf("%s, in %s: %s", sharedClassName(e), check.Some(tried), strings.Join(names, ", "))
	if len(small) > 0 {
		passed += "; not tried in " + check.Some(small) + ", where a LimitRange allows no claim of 1Mi"
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
		return steps.Failed(fmt.Sprintf("a shared claim %s is refused in %s: %s", o.name, in, o.refused),
			refusedFix(ctx, e, in, o.refused))
	case strings.Contains(o.got, unconfigured):
		return steps.Failed(
			fmt.Sprintf("a shared claim %s gets the class %s in %s: the published guide's extension was told no class",
				o.name, clean.Text(o.got), in),
			e.Kubectl()+" -n vsphere-extensions edit configmap vsphere-extensions-cm"+
				"    # vsphere-extensions.readwritemany-sc="+sharedClassName(e)+
				"; then rollout restart deployment vsphere-extensions")
	case o.got != sharedClassName(e):
		return steps.Failed(
			fmt.Sprintf("a shared claim %s gets %s in %s, and is to get %s", o.name, o.word(), in, sharedClassName(e)),
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
		return "the class \"\""
	}
	return clean.Text(o.got)
}

// mutationFix is the fix if claims do not get their class; "" means the check's own action.
func mutationFix(e steps.Env) string {
	switch e.Answers.Text("mutation.by") {
	case byWebhook:
		return "carrick check " + e.LinkFile() +
			" --only extension-ready,extension-endpoints,extension-config,cert-bundle,webhook-rules    # which of them " +
			"it is; then " + e.ApplyStep("extension")
	case byKyverno:
		return "carrick export " + e.LinkFile() + " DIR, and apply its ClusterPolicy " + policyName
	case byNobody:
		return answer(e, "mutation.by", byPolicy)
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
		"%s get mutatingadmissionpolicies,validatingadmissionpolicies,mutatingwebhookconfigurations,validatingwebhookconfigurations    # the reason names the one that refuses; a quota is shown by: %s -n %s get resourcequotas",
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
		all = append(all, triedClaim{name: "of the class " + usual, mode: corev1.ReadWriteOnce, class: &usual})
	}
	got, err := tryClaims(ctx, e, in, all...)
	if err != nil {
		return steps.Errored(err)
	}
	for _, o := range got {
		switch {
		case o.refused != "":
			return steps.Failed(fmt.Sprintf("a claim %s is refused in %s: %s", o.name, in, o.refused),
				refusedFix(ctx, e, in, o.refused))
		case o.got != usual:
			return steps.Failed(
				fmt.Sprintf(
					"a claim that one node writes to, %s, gets %s in %s, and not the default class %s", o.name, o.word(), in,
					cmp.Or(usual, "(there is none)"),
				),
				whoFix(e),
			)
		}
	}
	return steps.Passed("%s, in %s", cmp.Or(usual, "(there is none)"), in)
}

// whoFix is the command that finds out what changes claims that must stay unchanged.
func whoFix(e steps.Env) string {
	return "carrick check " + e.LinkFile() + " --only one-mutator,webhook-rules    # who is asked about claims; then " +
		e.ApplyStep("mutation")
}

func staticKeeps(ctx context.Context, e steps.Env) steps.Result {
	in, err := tryIn(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	none := ""
	all := []triedClaim{
		{name: "that many pods write to", mode: corev1.ReadWriteMany, class: &none},
		{name: "that one node writes to", mode: corev1.ReadWriteOnce, class: &none},
	}
	if from := e.Answers.List("mutation.from"); exchanges(e) && len(from) > 0 {
		all = append(
			all,
			triedClaim{name: "that names its volume", mode: corev1.ReadWriteMany, class: &from[0], volume: "carrick-preview"},
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
			return steps.Failed(fmt.Sprintf("a claim of the class %s, %s, is refused in %s: %s", asked, o.name, in, o.refused),
				refusedFix(ctx, e, in, o.refused))
		case !o.has || o.got != *o.class:
			return steps.Failed(
				fmt.Sprintf(
					"a claim of the class %s, %s, gets %s in %s: it does not find the volume that was made for it", asked, o.name,
					o.word(), in,
				),
				whoFix(e),
			)
		}
	}
	return steps.Passed("in %s", in)
}

func silentFailure(ctx context.Context, e steps.Env) steps.Result {
	all, err := mutators(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	i := slices.IndexFunc(all, func(m mutator) bool { return m.sure && m.by == byWebhook })
	if i < 0 {
		return steps.Skipped("there is no webhook yet that exchanges the class of claims")
	}
	hook := all[i]
	if usuallyShared(e) {
		return steps.Skipped("%s is the default class: claims get it whether or not %s answers",
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
	meanwhile := "if it ever does not, claims are refused until it does (failurePolicy Fail)"
	if hook.fail == failOpen {
		meanwhile = "if it ever does not, claims get the class that they ask for (failurePolicy Ignore), which this row tells"
	}
	switch o := got[0]; {
	case o.refused != "":
		return steps.Failed(fmt.Sprintf(
			"%s has failurePolicy %s: claims in the namespaces that it looks at are refused now: %s",
			hook, hook.fail, o.refused), refusedFix(ctx, e, in, o.refused))
	case o.got != sharedClassName(e) && hook.fail == failOpen:
		return steps.Failed(
			fmt.Sprintf(
				"%s is passed over, and nobody is told (failurePolicy Ignore): shared claims get %s now, and stay Pending", hook,
				o.word(),
			),
			mutationFix(e),
		)
	case o.got != sharedClassName(e):
		return steps.Failed(
			fmt.Sprintf(
				"%s has failurePolicy %s and lets shared claims in with %s: it answers, and with the wrong class, or is not asked",
				hook, hook.fail, o.word(),
			),
			mutationFix(e),
		)
	}
	return steps.Passed("%s is asked and answers; %s", hook, meanwhile)
}
