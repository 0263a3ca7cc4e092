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
			Name: "rwx-gets-class", Title: "A ReadWriteMany claim gets the shared StorageClass", On: steps.Local,
			From: dryRun, When: sharedByDefault, FixedBy: "policy",
			Needs: []string{"signed-in", "one-mutator"},
			Why: "With the default StorageClass of a Tanzu guest, the claims of Kale and pipelines stay Pending " +
				"indefinitely.",
			References: []string{mutatorSource, mutatingPolicySource}, Run: rwxGetsClass,
		},
		{
			Name: "rwo-keeps-class", Title: "A ReadWriteOnce claim keeps its StorageClass", On: steps.Local, From: dryRun,
			Needs:      []string{"signed-in"},
			Why:        "Databases and notebooks belong on the guest's block storage, not on NFS.",
			References: []string{mutatorSource}, Run: rwoKeepsClass,
		},
		{
			Name: "static-keeps", Title: "A claim for an existing volume keeps its StorageClass", On: steps.Local,
			From: dryRun, Needs: []string{"signed-in"},
			Why: "StorageClass \"\" or a volume name requests an existing volume. If a webhook sets another StorageClass, as " +
				"the published one does, the claim is never bound.",
			References: []string{mutatorSource}, Run: staticKeeps,
		},
		{
			Name: "silent-failure", Title: "No claim silently bypasses the webhook", On: steps.Local,
			From: dryRun, When: usesWebhook, Needs: []string{"signed-in"},
			Why: "With failurePolicy Ignore, a webhook that is down or has an untrusted certificate is skipped, and claims " +
				"get the default StorageClass.",
			References: []string{
				mutatorSource,
				"https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#failure-policy",
			}, Run: silentFailure,
		},
		{
			Name: "claims-pending", Title: "No ReadWriteMany claim waits for an unsuitable StorageClass", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "The StorageClass of a claim is immutable, so older claims and their pods stay Pending until the " +
				"claims are recreated.",
			References: []string{"https://kubernetes.io/docs/concepts/storage/persistent-volumes/#reclaiming"},
			Run:        claimsPending,
		},
	}
}

// sharedByDefault reports whether claims without a StorageClass are expected to get the shared StorageClass, whatever
// sets it.
func sharedByDefault(e steps.Env) bool {
	return exchanges(e) || e.Answers.Text("storage.source") == native || usuallyShared(e)
}

func sharedElsewhere(e steps.Env) bool { return e.Answers.Text("storage.source") != native }

// sharedClaims returns the claims that must get the shared StorageClass: one without a
// StorageClass, and one with each StorageClass that is replaced.
func sharedClaims(e steps.Env) []triedClaim {
	out := []triedClaim{{name: "without a StorageClass", mode: corev1.ReadWriteMany}}
	if exchanges(e) {
		for _, name := range e.Answers.List("mutation.replaces") {
			out = append(out, triedClaim{name: "with StorageClass " + name, mode: corev1.ReadWriteMany, class: &name})
		}
	}
	return out
}

// unconfigured is the StorageClass, without its quotes, that the published guide's extension sets if none is configured
// (src/main/resources/application.properties).
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
		looks = append(looks, func() (err error) { // with more profiles, each is tested less often
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
			small = append(small, in) // proves nothing about the StorageClass
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

// hasClass returns the verdict on o, the outcome of a claim from sharedClaims. The parameter in is the namespace of the
// claim.
func hasClass(ctx context.Context, e steps.Env, in string, o outcome) steps.Result {
	switch {
	case o.refused != "":
		return steps.Failed(fmt.Sprintf("a ReadWriteMany claim %s is rejected in namespace %s: %s", o.name, in, o.refused),
			refusedFix(ctx, e, in, o.refused))
	case strings.Contains(o.got, unconfigured):
		return steps.Failed(
			fmt.Sprintf(
				"a ReadWriteMany claim %s gets StorageClass %s in namespace %s, because the published guide's extension has no "+
					"StorageClass configured",
				o.name, clean.Text(o.got), in,
			),
			e.Kubectl()+" -n vsphere-extensions edit configmap vsphere-extensions-cm"+
				"    # vsphere-extensions.readwritemany-sc="+sharedClassName(e)+
				"; then rollout restart deployment vsphere-extensions")
	case o.got != sharedClassName(e):
		return steps.Failed(
			fmt.Sprintf(
				"a ReadWriteMany claim %s gets %s in namespace %s instead of %s", o.name, o.word(), in, sharedClassName(e),
			),
			mutationFix(e))
	}
	return steps.Passed("%s", sharedClassName(e))
}

// word describes the StorageClass that the claim got, for use in a finding.
func (o outcome) word() string {
	switch {
	case !o.has:
		return "no StorageClass"
	case o.got == "":
		return "StorageClass \"\""
	}
	return clean.Text(o.got)
}

// mutationFix returns the fix for claims that do not get the shared StorageClass. It returns "" if the check's FixedBy
// action is the fix.
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

// refusedFix returns the fix for a rejected claim. The parameter in is the claim's namespace, and why is the API
// server's message. If a ResourceQuota or LimitRange rejected the claim, the fix changes that object. Otherwise the fix
// is a command that shows what can reject claims.
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
		"%s get mutatingadmissionpolicies,validatingadmissionpolicies,mutatingwebhookconfigurations,validatingwebhookconfigurations    # the message names the policy or webhook that rejects the claim; for a quota: %s -n %s get resourcequotas",
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
	all := []triedClaim{{name: "without a StorageClass", mode: corev1.ReadWriteOnce}}
	if usual != "" {
		all = append(all, triedClaim{name: "with StorageClass " + usual, mode: corev1.ReadWriteOnce, class: &usual})
	}
	got, err := tryClaims(ctx, e, in, all...)
	if err != nil {
		return steps.Errored(err)
	}
	for _, o := range got {
		switch {
		case o.refused != "":
			return steps.Failed(fmt.Sprintf("a ReadWriteOnce claim %s is rejected in namespace %s: %s", o.name, in, o.refused),
				refusedFix(ctx, e, in, o.refused))
		case o.got != usual:
			return steps.Failed(
				fmt.Sprintf(
					"a ReadWriteOnce claim %s gets %s in namespace %s instead of the default StorageClass %s", o.name, o.word(), in,
					cmp.Or(usual, "(none)"),
				),
				mutatorFix(e),
			)
		}
	}
	return steps.Passed("%s, in namespace %s", cmp.Or(usual, "no StorageClass"), in)
}

// mutatorFix returns the command that shows which policy or webhook changes claims that must stay
// unchanged.
func mutatorFix(e steps.Env) string {
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
		{name: "and access mode ReadWriteMany", mode: corev1.ReadWriteMany, class: &none},
		{name: "and access mode ReadWriteOnce", mode: corev1.ReadWriteOnce, class: &none},
	}
	if from := e.Answers.List("mutation.replaces"); exchanges(e) && len(from) > 0 {
		all = append(
			all,
			triedClaim{name: "and a volume name", mode: corev1.ReadWriteMany, class: &from[0], volume: "carrick-preview"},
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
			return steps.Failed(
				fmt.Sprintf("a claim with StorageClass %s %s is rejected in namespace %s: %s", asked, o.name, in, o.refused),
				refusedFix(ctx, e, in, o.refused),
			)
		case !o.has || o.got != *o.class:
			return steps.Failed(
				fmt.Sprintf(
					"a claim with StorageClass %s %s gets %s in namespace %s, so the claim does not find its volume", asked, o.name,
					o.word(), in,
				),
				mutatorFix(e),
			)
		}
	}
	return steps.Passed("tested in namespace %s", in)
}

func silentFailure(ctx context.Context, e steps.Env) steps.Result {
	all, err := mutators(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	i := slices.IndexFunc(all, func(m mutator) bool { return m.sure && m.by == byWebhook })
	if i < 0 {
		return steps.Skipped("no webhook sets the StorageClass of claims yet")
	}
	hook := all[i]
	if usuallyShared(e) {
		return steps.Skipped("%s is the default StorageClass, so claims get it even if %s does not answer",
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
	meanwhile := "If the webhook fails, claims are rejected until it answers again (failurePolicy Fail)"
	if hook.fail == failOpen {
		meanwhile = "If the webhook fails, claims keep the StorageClass that they request (failurePolicy Ignore), and this " +
			"check fails"
	}
	switch o := got[0]; {
	case o.refused != "":
		return steps.Failed(fmt.Sprintf(
			"%s has failurePolicy %s, so claims in its namespaces are now rejected: %s",
			hook, hook.fail, o.refused), refusedFix(ctx, e, in, o.refused))
	case o.got != sharedClassName(e) && hook.fail == failOpen:
		return steps.Failed(
			fmt.Sprintf(
				"%s is silently skipped (failurePolicy Ignore). ReadWriteMany claims now get %s and stay Pending", hook,
				o.word(),
			),
			mutationFix(e),
		)
	case o.got != sharedClassName(e):
		return steps.Failed(
			fmt.Sprintf(
				"%s has failurePolicy %s, but ReadWriteMany claims are admitted with %s. The webhook sets the wrong StorageClass "+
					"or is not called",
				hook, hook.fail, o.word(),
			),
			mutationFix(e),
		)
	}
	return steps.Passed("%s is called and answers. %s", hook, meanwhile)
}
