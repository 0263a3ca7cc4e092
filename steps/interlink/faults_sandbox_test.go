package interlink_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps"
	"carrick/steps/interlink"
	"carrick/steps/stepstest"
)

// joined is what the sandbox has of a site with a fault, and a link of its own, or
// one that takes on what stands there.
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

// said is what a check has to say of something that is wrong, and whether its fix,
// as it is printed, is run and has to make it hold.
type said struct {
	check, found, fix string
	mended            bool
}

// onSite are the faults of the sandbox: which checks find them.
var onSite = map[string]struct {
	adopted bool // a set-up stands, and is adopted
	calm    bool // nothing fails
	says    []said
	more    map[string]any // answers
}{
	"by-hand": {adopted: true, calm: true, says: []said{
		{"plugin-data-closed", "/root/.interlink/jobs has mode 0755", "chmod 0700 /root/.interlink/jobs", true},
		{"kubelet-mints-no-more", "may make a token for every ServiceAccount of the cluster", "edit clusterrole virtual-node-role", false},
	}},
	"anonymous-closed": {adopted: true, calm: true},
	"anonymous-open": {adopted: true, says: []said{
		{"endpoint-anonymous", "anybody may list namespaces without a token: ClusterRoleBinding everybody-views", "delete clusterrolebinding everybody-views", true},
	}},
	"certificate-expired": {adopted: true, says: []said{
		{"certificate-secret", "the certificate expired on", "delete secret web-ssl-kubernetes-api", true},
		{"endpoint-dates", "the certificate ended on", "delete secret web-ssl-kubernetes-api", true},
	}},
	"certificate-renewed": {adopted: true, says: []said{
		{"endpoint-renewed", "nginx.conf names the file by its name alone, so nginx has read it once", "rollout restart deployment k8s-api-proxy", true},
	}},
	"chart-ca": {says: []said{
		{"config-parses", "the chart has indented the CA wrongly", "the endpoint first", true},
		{"chart-release", "has interlink.kubernetesApiCaCrt set", "--set interlink.kubernetesApiCaCrt=", false},
		{"virtual-node", "there is no node virtual-node", "logs deploy/virtual-node-node", false},
	}},
	"endpoint-closed": {adopted: true, says: []said{{"endpoint-port", "nothing listens at", "nc -vz", false}}},
	"export-off":      {adopted: true, says: []said{{"plugin-exports", "says ExportPodData: false", "--step plugin", true}}},
	"no-address":      {more: map[string]any{"exposure.type": "LoadBalancer", "exposure.port": 60443}, says: []said{{"exposure-fits", "nobody seems to give load balancers addresses here", "MetalLB", false}}},
	"no-cert-manager": {more: map[string]any{"cert.source": "cert-manager"}, says: []said{{"cert-manager-there", "certificates.cert-manager.io", "answer cert.source with own", false}}},
	"no-mint":         {adopted: true, says: []said{{"kubelet-mints", "may not create serviceaccounts/token", "create role", true}}},
	"projected-off":   {adopted: true, says: []said{{"projected-volumes", "DisableProjectedVolumes is true", "--step config", true}}},
	"upgraded": {adopted: true, says: []said{
		{"config-parses", "the chart has indented the CA wrongly", "--step config", true},
		{"chart-values", "has lost what revision 1 was given: interlink.address, interlink.port", "get values virtual-node --revision 1", false},
		{"chart-release", "has interlink.kubernetesApiCaCrt set", "--set interlink.kubernetesApiCaCrt=", false},
	}},
	"verbose-token": {adopted: true, says: []said{{"log-quiet", "VerboseLogging is true", "--step config", true}}},
	"watches-cut":   {adopted: true, says: []said{{"proxy-configuration", "has no proxy_read_timeout of ten minutes", "--step proxy", true}}},
	"page": {adopted: true, says: []said{
		{"ingress-upstream", "the shell that wrote the published file replaced $upstream by nothing", "carrick export", false},
		{"ingress-class", "makes a string of a map", "--set controller.ingressClassResource.name=nginx-internal", false},
		{"issuer-beside", "looked for in ingress-nginx-internal, and stands in cert-manager", "carrick export", false},
		{"endpoint-certificate", "Kubernetes Ingress Controller Fake Certificate", "--default-ssl-certificate", false},
		{"ingress-timeouts", "proxy-read-timeout is not set", "annotate ingress default", true},
		{"ingress-inside", "tokens go in plain HTTP", "answer exposure.mode with proxy", false},
		{"chart-values", "has lost what revision 1 was given: interlink.address, interlink.port", "get values virtual-node --revision 1", false},
	}},
}

func TestEveryFaultOfTheSiteIsTested(t *testing.T) {
	there := clustertest.Start(t).Faults(t, "interlink")
	for name, title := range there {
		if _, ok := onSite[name]; !ok {
			t.Errorf("no test has the fault %s: %s", name, title)
		}
	}
	for name := range onSite {
		if there[name] == "" {
			t.Errorf("the sandbox has no fault %s", name)
		}
	}
}

func TestFaultsOfASiteAreNamedAndMended(t *testing.T) {
	box := clustertest.Start(t)
	for _, name := range slices.Sorted(maps.Keys(onSite)) {
		t.Run(name, func(t *testing.T) {
			stepstest.Third(t)
			f := onSite[name]
			x := joined(t, box, name, f.adopted, f.more)
			if f.calm { // it is as good as it can be by hand
				for id, v := range x.Reds() {
					if v.Status != steps.Warn && !asksForTrial(id) {
						t.Errorf("%s: %s: %s", id, v.Status, v.Found)
					}
				}
			}
			finds(x, f.says)
		})
	}
}

// asksForTrial tells whether a check waits for somebody to try: the test Job and
// what is asked as a job would.
func asksForTrial(id string) bool {
	check, _, _ := strings.Cut(id, "@")
	return slices.Contains([]string{"asked-through", "watch-held", "job-complete"}, check)
}

// finds looks for what is to be said, and does what the fixes say.
func finds(x *stepstest.Site, says []said) {
	was := map[string]steps.Result{}
	x.Forget()
	for _, s := range says {
		was[s.check] = x.Named(s.check, s.found, s.fix)
	}
	for _, s := range says {
		if s.mended {
			x.Mends(s.check, was[s.check])
		}
	}
}
