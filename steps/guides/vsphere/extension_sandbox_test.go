package vsphere_test

import (
	"maps"
	"slices"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/vsphere"
	"carrick/steps/stepstest"
)

// byWebhook returns answers with which carrick's extension sets the StorageClass of claims,
// although the sandbox also serves MutatingAdmissionPolicies.
func byWebhook(t *testing.T, box *clustertest.Sandbox, more map[string]any) map[string]any {
	t.Helper()
	all := map[string]any{
		"storage.source": "nfs", "claim.pods": false, "mutation.method": "webhook",
		"extension.image": "registry.example.org/carrick:v1",
	}
	maps.Copy(all, more)
	return stepstest.Given(t, box, vsphere.Guide(), all)
}

// Running pods serve a renewed certificate without a restart. The CA in the webhook verifies it.
func TestVerifyTheExtensionShowsARenewedCertificate(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := seeded(t, "")
	x := stepstest.SiteOf(t, box, vsphere.Guide(), assets, false, byWebhook(t, box, map[string]any{"cert.source": "own"}))
	stepstest.Apply(t, x.Session, steps.ApplyOptions{TakeOver: true})
	pods := func() string {
		return box.Run(
			t, clustertest.Local, "", "-n", "vsphere-extensions", "get", "pods", "-o",
			"jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[*].restartCount};{end}",
		)
	}
	was := pods()
	box.Run(t, clustertest.Local, "", "-n", "vsphere-extensions", "delete", "secret", "vsphere-extensions-tls")
	p := stepstest.Apply(t, x.Session, steps.ApplyOptions{TakeOver: true})
	if changed := slices.Collect(names(p)); !slices.Equal(changed, []string{"cert-own"}) {
		t.Errorf("the renewal changes %v", changed)
	}
	x.Holds("cert-bundle", "a renewal")
	x.Holds("silent-failure", "a renewal")
	if now := pods(); now != was {
		t.Errorf("pods were %s, and are %s", was, now)
	}
	stepstest.Undo(t, x.Session)
}

// names returns the names of a plan's actions that change something.
func names(p *engine.Plan) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, a := range p.Actions {
			if slices.ContainsFunc(a.Change.Items, func(i steps.Item) bool { return i.Verb.Changes() }) && !yield(a.Action) {
				return
			}
		}
	}
}

// Checks report faults of an existing webhook, and the printed fixes repair them. Recorded states
// cover the faults that the published guide leaves behind.
func TestVerifyLiveFaultsOfTheExtension(t *testing.T) {
	faults := map[string][]stepstest.Finding{
		"cert-expired": {
			{Check: "cert-secret", Found: "the certificate expired on", Fix: "--step certificates", Fixed: true},
		},
		"webhook-down": {{Check: "silent-failure", Found: "is silently skipped", Fix: "--step extension"}},
		"webhook-network": {
			{Check: "extension-reached", Found: "allows only pods and namespaces", Fix: "kubectl", Fixed: true},
		},
		"webhook-sidecar": {
			{Check: "extension-reached", Found: "its pods are in a service mesh", Fix: "istio-injection=disabled", Fixed: true},
		},
		"webhook-wide": {
			{
				Check: "webhook-rules", Found: "has no namespaceSelector", Fix: "--step extension --take-over --replace",
				Fixed: true,
			},
		},
		"webhook-other-ca": {
			{Check: "cert-bundle", Found: "is not valid: ", Fix: "--step extension --take-over --replace", Fixed: true},
		},
		"config-stale": {
			{Check: "extension-config", Found: `sets StorageClass "old-nfs"`, Fix: "patch configmap", Fixed: true},
		},
	}
	stepstest.Live(t, "live", stepstest.Except(faults, nil), func(t *testing.T, box *clustertest.Sandbox, name string) {
		box.SeedFault(t, "vsphere", name)
		stepstest.SiteOf(t, box, vsphere.Guide(), assets, true, map[string]any{}).Finds(faults[name])
	})
}

// carrick replaces the objects that the published guide leaves behind.
func TestVerifyThePageGivesWay(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := clustertest.Start(t)
	box.SeedFault(t, "vsphere", "page")
	x := stepstest.SiteOf(
		t, box, vsphere.Guide(), assets, false, byWebhook(t, box, map[string]any{"cert.source": "cert-manager"}),
	)
	box.Run(
		t, clustertest.Local, "", "delete", "--ignore-not-found", "mutatingwebhookconfiguration",
		"mutating.vsphere-extensions.keeyzar.de",
	)
	box.Run(
		t, clustertest.Local, "", "-n", "vsphere-extensions", "delete", "--ignore-not-found", "secret",
		"vsphere-extensions-tls",
	)
	p, err := x.Plan(t.Context(), engine.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Apply(t.Context(), p, steps.ApplyOptions{TakeOver: true, Replace: true}, nil); err != nil {
		t.Fatal(err)
	}
	for _, check := range []string{
		"extension-ready", "extension-endpoints", "cert-bundle", "webhook-rules", "rwx-gets-class", "silent-failure",
	} {
		x.Holds(check, "apply")
	}
	x.Mends(
		"extension-rights",
		x.Named("extension-rights", "vsphere-extensions-default-rolebinding", "delete clusterrolebinding"),
	)
}
