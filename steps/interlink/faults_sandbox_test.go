package interlink_test

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"carrick/cluster/clustertest"
	"carrick/steps"
	"carrick/steps/interlink"
	"carrick/steps/stepstest"
)

// site is a cluster of the sandbox with a virtual node, the edge node behind it, and
// a link between them.
type site struct {
	*steps.Session
	t   *testing.T
	box *clustertest.Sandbox
}

// joined is what the sandbox has of a site with a fault, and a link of its own, or
// one that takes on what stands there.
func joined(t *testing.T, box *clustertest.Sandbox, fault string, adopted bool, more map[string]any) *site {
	t.Helper()
	box.SeedFault(t, "interlink", fault)
	given := map[string]any{}
	if !adopted {
		given = stepstest.Given(t, box, interlink.Guide(), nil)
	}
	maps.Copy(given, more)
	x := &site{t: t, box: box, Session: stepstest.Open(t, box, interlink.Guide(), assets, "demo", given)}
	t.Cleanup(x.Close)
	x.Link().Path = filepath.Join(t.TempDir(), "demo.yaml")
	if !adopted {
		return x
	}
	found, err := x.Adopt(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := x.SaveAdopted(found); err != nil {
		t.Fatal(err)
	}
	return x
}

// reds are the verdicts that are neither pass nor skip, by "check@side".
func (x *site) reds() map[string]steps.Result {
	x.t.Helper()
	x.Forget()
	out := map[string]steps.Result{}
	b, _ := x.Look(x.t.Context(), x.Guide().Cells())
	for _, c := range x.Guide().Cells() {
		if v := b.Verdict(c); v.Status != steps.Pass && v.Status != steps.Skip {
			out[c.Check+"@"+string(c.Side)] = v
		}
	}
	return out
}

// of is the verdict of a check, on the side where it says something; of one that
// looks from both it is the cluster's.
func (x *site) of(check string) steps.Result {
	x.t.Helper()
	c, step := x.Guide().Check(check)
	if c == nil {
		x.t.Fatalf("there is no check %s", check)
	}
	side := c.On
	if side == steps.Both {
		side = steps.Local
	}
	b, _ := x.Look(x.t.Context(), x.Guide().Cells())
	return b.Verdict(steps.Cell{Step: step.Name, Check: check, Side: side})
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
			f := onSite[name]
			x := joined(t, box, name, f.adopted, f.more)
			if f.calm { // it is as good as it can be by hand
				for id, v := range x.reds() {
					if v.Status != steps.Warn && !asksForTrial(id) {
						t.Errorf("%s: %s: %s", id, v.Status, v.Found)
					}
				}
			}
			x.finds(f.says)
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
func (x *site) finds(says []said) {
	x.t.Helper()
	x.Forget()
	for _, s := range says {
		v := x.of(s.check)
		if (v.Status != steps.Fail && v.Status != steps.Warn) || !strings.Contains(v.Found, s.found) || !strings.Contains(v.Fix, s.fix) || v.Fix == "" {
			x.t.Errorf("%s is %s: %q, want %q\nfix %q, want %q", s.check, v.Status, v.Found, s.found, v.Fix, s.fix)
		}
	}
	for _, s := range says {
		if !s.mended {
			continue
		}
		x.Forget()
		now := x.of(s.check)
		if now.Status == steps.Pass { // by the fix of another
			continue
		}
		x.fix(now.Fix)
		x.holds(s.check, now.Fix)
	}
}

// holds waits until a check does.
func (x *site) holds(check, fix string) {
	x.t.Helper()
	c, step := x.Guide().Check(check)
	side := c.On
	if side == steps.Both {
		side = steps.Local
	}
	cell := steps.Cell{Step: step.Name, Check: check, Side: side}
	x.Forget()
	ctx, cancel := context.WithTimeout(x.t.Context(), time.Minute)
	defer cancel()
	var v steps.Result
	if err := x.Follow(ctx, x.Guide().Cells(), func(b *steps.Board, _ map[steps.Cell]steps.Look, _ steps.Cell) bool {
		v = b.Verdict(cell)
		return v.Status != steps.Pass
	}); err != nil {
		x.t.Errorf("%s after %q: %s: %s", check, fix, v.Status, v.Found)
	}
}

var (
	applyLine = regexp.MustCompile(`^carrick apply \S+((?: --step \S+)*)`)
	stepFlag  = regexp.MustCompile(`--step (\S+)`)
)

// fix does as a fix says: carrick by its engine, commands by a shell that has
// kubectl, those of the edge node within the folder that stands for it.
func (x *site) fix(text string) {
	x.t.Helper()
	line, onEdge := strings.CutPrefix(text, "run on the edge node: ")
	if onEdge || strings.HasPrefix(text, "kubectl ") {
		if onEdge {
			line = strings.ReplaceAll(line, " /", " "+x.box.Hosts[clustertest.Remote]+"/")
		}
		cmd := exec.CommandContext(x.t.Context(), "sh", "-ec", line)
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(x.box.Kubectl)+string(os.PathListSeparator)+os.Getenv("PATH"),
			"KUBECONFIG="+x.box.Kubeconfigs[clustertest.Local])
		if out, err := cmd.CombinedOutput(); err != nil {
			x.t.Errorf("%s: %v: %s", line, err, out)
		}
		return
	}
	m := applyLine.FindStringSubmatch(text)
	if m == nil {
		x.t.Errorf("the fix can't be run: %s", text)
		return
	}
	var scope steps.Scope
	for _, flag := range stepFlag.FindAllStringSubmatch(m[1], -1) {
		scope.Steps = append(scope.Steps, flag[1])
	}
	p, err := x.Plan(x.t.Context(), scope)
	if err == nil {
		err = x.Apply(x.t.Context(), p, steps.ApplyOptions{TakeOver: true, Replace: true}, nil)
	}
	if err != nil {
		x.t.Errorf("%s: %v", text, err)
	}
}
