package interlink_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps"
	"carrick/steps/guides/interlink"
	"carrick/steps/stepstest"
)

// joined returns a site with a fault in the sandbox, with a new link, or with one that adopts the existing set-up.
func joined(t *testing.T, box *clustertest.Sandbox, fault string, adopted bool, more map[string]any) *stepstest.Site {
	t.Helper()
	box.SeedFault(t, "interlink", fault)
	given := map[string]any{}
	if !adopted {
		given = stepstest.Given(t, box, interlink.Guide(), nil)
	}
	maps.Copy(given, more)
	return stepstest.SiteOf(t, box, interlink.Guide(), assets, adopted, given)
}

// onSite maps the sandbox's faults to the checks that must find them. Recorded states test all other faults.
var onSite = map[string]struct {
	adopted bool // an existing set-up is adopted
	calm    bool // nothing fails
	says    []stepstest.Finding
	more    map[string]any // answers
}{
	"by-hand": {adopted: true, calm: true, says: []stepstest.Finding{
		{
			Check: "plugin-data-closed", Found: "/root/.interlink/jobs has mode 0755", Fix: "chmod 0700 /root/.interlink/jobs",
			Fixed: true,
		},
		{
			Check: "kubelet-least-privilege", Found: "can create a token for every ServiceAccount of the cluster",
			Fix: "edit clusterrole virtual-node-role",
		},
	}},
	"anonymous-open": {adopted: true, says: []stepstest.Finding{
		{
			Check: "endpoint-anonymous",
			Found: "everyone can list namespaces without a token: ClusterRoleBinding everybody-views",
			Fix:   "delete clusterrolebinding everybody-views", Fixed: true,
		},
	}},
	"certificate-expired": {adopted: true, says: []stepstest.Finding{
		{Check: "certificate-secret", Found: "the certificate expired on", Fix: "--step certificates", Fixed: true},
		{Check: "endpoint-dates", Found: "the certificate expired on", Fix: "--step certificates", Fixed: true},
	}},
	"certificate-renewed": {adopted: true, says: []stepstest.Finding{
		{
			Check: "endpoint-renewed", Found: "nginx.conf has a fixed file name, so nginx read the certificate only at start",
			Fix: "rollout restart deployment k8s-api-proxy", Fixed: true,
		},
	}},
	"chart-ca": {says: []stepstest.Finding{
		{
			Check: "config-parses", Found: "the chart indented the CA incorrectly", Fix: "first creates the endpoint",
			Fixed: true,
		},
		{Check: "chart-release", Found: "has interlink.kubernetesApiCaCrt set", Fix: "--set interlink.kubernetesApiCaCrt="},
		{Check: "virtual-node", Found: "node virtual-node does not exist", Fix: "logs deploy/virtual-node-node"},
	}},
	"export-off": {
		adopted: true,
		says: []stepstest.Finding{
			{Check: "plugin-exports", Found: "sets ExportPodData: false", Fix: "--step plugin", Fixed: true},
		},
	},
	"no-mint": {
		adopted: true,
		says: []stepstest.Finding{
			{Check: "kubelet-creates-tokens", Found: "cannot create serviceaccounts/token", Fix: "create role", Fixed: true},
		},
	},
	"projected-off": {
		adopted: true,
		says: []stepstest.Finding{
			{Check: "projected-volumes", Found: "DisableProjectedVolumes is true", Fix: "--step config", Fixed: true},
		},
	},
	"serving-pending": {adopted: true, says: []stepstest.Finding{
		{
			Check: "serving-certificate", Found: "of the virtual kubelet is waiting for approval",
			Fix: "certificate approve vk-virtual-node-", Fixed: true,
		},
	}},
	"upgraded": {adopted: true, says: []stepstest.Finding{
		{Check: "config-parses", Found: "the chart indented the CA incorrectly", Fix: "--step config", Fixed: true},
		{
			Check: "chart-values", Found: "lost values of revision 1: interlink.address, interlink.port",
			Fix: "get values virtual-node --revision 1",
		},
		{Check: "chart-release", Found: "has interlink.kubernetesApiCaCrt set", Fix: "--set interlink.kubernetesApiCaCrt="},
	}},
	"verbose-token": {
		adopted: true,
		says: []stepstest.Finding{
			{Check: "no-tokens-in-log", Found: "VerboseLogging is true", Fix: "--step config", Fixed: true},
		},
	},
	"watches-cut": {
		adopted: true,
		says: []stepstest.Finding{
			{
				Check: "proxy-configuration", Found: "has no proxy_read_timeout of at least ten minutes", Fix: "--step proxy",
				Fixed: true,
			},
		},
	},
	"page": {adopted: true, says: []stepstest.Finding{
		{
			Check: "ingress-upstream", Found: "the shell that wrote the published file replaced $upstream with an empty string",
			Fix: "carrick export",
		},
		{
			Check: "ingress-class", Found: "replaces a map with a string",
			Fix: `--set-json 'controller.ingressClassResource={"name":"nginx-internal"`,
		},
		{
			Check: "issuer-namespace", Found: "must be in ingress-nginx-internal but is in cert-manager",
			Fix: "carrick export",
		},
		{
			Check: "endpoint-certificate", Found: "Kubernetes Ingress Controller Fake Certificate",
			Fix: "--default-ssl-certificate",
		},
		{Check: "ingress-timeouts", Found: "proxy-read-timeout is not set", Fix: "annotate ingress default", Fixed: true},
		{Check: "ingress-inside", Found: "tokens go over plain HTTP", Fix: "set exposure.mode to proxy"},
		{
			Check: "chart-values", Found: "lost values of revision 1: interlink.address, interlink.port",
			Fix: "get values virtual-node --revision 1",
		},
	}},
}

// liveFaults lists the fault that "make test" runs on real control planes, because it involves RBAC.
var liveFaults = []string{"no-mint"}

func TestLiveFaults(t *testing.T) { stepstest.Live(t, "live", liveFaults, findsAndFixes) }

func TestVerifyLiveFaults(t *testing.T) {
	stepstest.Live(t, "live", stepstest.Except(onSite, liveFaults), findsAndFixes)
}

// findsAndFixes verifies that the checks find a fault and that their printed fixes repair it.
func findsAndFixes(t *testing.T, box *clustertest.Sandbox, name string) {
	f := onSite[name]
	x := joined(t, box, name, f.adopted, f.more)
	if f.calm { // it is as good as it can be by hand
		for id, v := range x.Reds() {
			if v.Status != steps.Warn && !asksForTrial(id) {
				t.Errorf("%s: %s: %s", id, v.Status, v.Found)
			}
		}
	}
	x.Finds(f.says)
}

// asksForTrial reports whether a check waits for a trial to run: the test Job, or requests sent as a job would send
// them.
func asksForTrial(id string) bool {
	check, _, _ := strings.Cut(id, "@")
	return slices.Contains([]string{"requests-pass", "watch-held", "job-complete"}, check)
}
