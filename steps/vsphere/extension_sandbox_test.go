package vsphere_test

import (
	"maps"
	"slices"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps"
	"carrick/steps/stepstest"
	"carrick/steps/vsphere"
)

// byWebhook are the answers by which carrick's extension exchanges classes, though the
// sandbox serves policies, too.
func byWebhook(t *testing.T, box *clustertest.Sandbox, more map[string]any) map[string]any {
	t.Helper()
	all := map[string]any{"storage.source": "nfs", "claim.pods": false, "mutation.by": "webhook", "extension.image": "registry.example.org/carrick:v1"}
	maps.Copy(all, more)
	return stepstest.Given(t, box, vsphere.Guide(), all)
}

// The extension as a real process, asked by the API server: made, green, and taken back
// until nothing is left.
func TestExtensionCycle(t *testing.T) {
	for name, more := range map[string]map[string]any{
		"own":          {"cert.source": "own", "mutation.fail": "Fail"},
		"cert-manager": {"cert.source": "cert-manager", "extension.replicas": 1},
	} {
		t.Run(name, func(t *testing.T) {
			stepstest.Among(t, name, "own")
			box := seeded(t, "")
			stepstest.CycleOver(t, box, vsphere.Guide(), assets, name, byWebhook(t, box, more))
		})
	}
}

// A renewed certificate is shown by pods that run on, and proved by the CA that the API
// server has been told.
func TestTheExtensionShowsARenewedCertificate(t *testing.T) {
	stepstest.Long(t)
	box := seeded(t, "")
	x := stepstest.SiteOf(t, box, vsphere.Guide(), assets, false, byWebhook(t, box, map[string]any{"cert.source": "own"}))
	stepstest.Apply(t, x.Session, steps.ApplyOptions{TakeOver: true})
	pods := func() string {
		return box.Run(t, clustertest.Local, "", "-n", "vsphere-extensions", "get", "pods", "-o", "jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[*].restartCount};{end}")
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

// names are the actions of a plan that change something.
func names(p *steps.Plan) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, a := range p.Actions {
			if slices.ContainsFunc(a.Change.Items, func(i steps.Item) bool { return i.Verb.Changes() }) && !yield(a.Action) {
				return
			}
		}
	}
}

// told is what a check has to say of something that is wrong, and whether its fix, as it
// is printed, is run and has to make it hold.
type told struct {
	check, found, fix string
	mended            bool
}

// What is wrong with a webhook that stands, and what the published page leaves behind:
// it is said, and what is said to do about it helps.
func TestExtensionFaults(t *testing.T) {
	page := map[string]any{"storage.source": "nfs", "claim.pods": false, "mutation.by": "webhook", "extension.program": "carrick", "extension.image": "registry.example.org/carrick:v1", "cert.source": "cert-manager", "mutation.fail": "Ignore"}
	for fault, on := range map[string]struct {
		page bool // nothing of carrick's stands
		says []told
	}{
		"cert-expired": {says: []told{{"cert-secret", "the certificate expired on", "delete secret vsphere-extensions-tls", true}}},
		"webhook-down": {says: []told{{"silent-failure", "is passed over, and nobody is told", "--step extension", false}}},
		"webhook-network": {says: []told{
			{"extension-reached", "lets in pods and namespaces at the most", "kubectl", true},
		}},
		"webhook-sidecar": {says: []told{{"extension-reached", "its pods are in a mesh", "istio-injection=disabled", true}}},
		"webhook-wide":    {says: []told{{"webhook-rules", "has no selector of namespaces", "--step extension --take-over --replace", true}}},
		"webhook-other-ca": {says: []told{
			{"cert-bundle", "does not hold: ", "--step extension --take-over --replace", true},
		}},
		"config-stale": {says: []told{{"extension-config", `has the class "old-nfs"`, "patch configmap", true}}},
		"page-webhook": {page: true, says: []told{
			{"cert-bundle", "the CA of the published file", "--step extension --take-over --replace", false},
			{"webhook-rules", "has no selector of namespaces", "--step extension --take-over --replace", false},
		}},
		"page-empty-cert": {page: true, says: []told{{"cert-secret", "is empty", "delete secret vsphere-extensions-tls", false}}},
		"page-sed":        {page: true, says: []told{{"page-sed", "the published sed looks for nfs-client", "patch configmap", false}}},
		"page": {page: true, says: []told{
			{"extension-image", "gets no image", "--take-over --replace", false},
			{"extension-rights", "vsphere-extensions-default-rolebinding", "delete clusterrolebinding", false},
		}},
	} {
		t.Run(fault, func(t *testing.T) {
			stepstest.Third(t)
			box := clustertest.Start(t)
			box.SeedFault(t, "vsphere", fault)
			given := map[string]any{}
			if on.page {
				given = stepstest.Given(t, box, vsphere.Guide(), page)
			}
			x := stepstest.SiteOf(t, box, vsphere.Guide(), assets, !on.page, given)
			was := map[string]steps.Result{}
			for _, s := range on.says {
				was[s.check] = x.Named(s.check, s.found, s.fix)
			}
			for _, s := range on.says {
				if s.mended {
					x.Mends(s.check, was[s.check])
				}
			}
		})
	}
}

// What the published page leaves behind gives way to what carrick makes.
func TestThePageGivesWay(t *testing.T) {
	stepstest.Long(t)
	box := clustertest.Start(t)
	box.SeedFault(t, "vsphere", "page")
	x := stepstest.SiteOf(t, box, vsphere.Guide(), assets, false, byWebhook(t, box, map[string]any{"cert.source": "cert-manager"}))
	box.Run(t, clustertest.Local, "", "delete", "--ignore-not-found", "mutatingwebhookconfiguration", "mutating.vsphere-extensions.keeyzar.de")
	box.Run(t, clustertest.Local, "", "-n", "vsphere-extensions", "delete", "--ignore-not-found", "secret", "vsphere-extensions-tls")
	p, err := x.Plan(t.Context(), steps.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Apply(t.Context(), p, steps.ApplyOptions{TakeOver: true, Replace: true}, nil); err != nil {
		t.Fatal(err)
	}
	for _, check := range []string{"extension-ready", "extension-endpoints", "cert-bundle", "webhook-rules", "rwx-gets-class", "silent-failure"} {
		x.Holds(check, "apply")
	}
	x.Mends("extension-rights", x.Named("extension-rights", "vsphere-extensions-default-rolebinding", "delete clusterrolebinding"))
}
