package renku_test

import (
	"errors"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/renku"
	"carrick/steps/stepstest"
)

// siteFault is a fault of the sandbox on a site without a setup. The findings of faults that no fix
// corrects are in their recorded states.
type siteFault struct {
	says   []fault  // the expected findings, in addition to those of a fresh site
	caused []string // further checks that fail, or whose namespace exists but is empty
	mend   func(t *testing.T, box *clustertest.Sandbox, s *engine.Session, first steps.Result)
	mended bool // the first finding must be gone after mend
}

// emptySpace lists the checks that fail if the session namespace exists but is empty.
var emptySpace = []string{
	"pod-security", "egress-policy", "ingress-policy", "custom-cas-exist", "service-account", "role-binding",
}

var siteFaults = map[string]siteFault{
	"operator-version": {
		says: []fault{
			{"operator-version", steps.Remote, "remote: 0.31.0 (label", "--step operator --take-over"},
			{"session-crd-equal", steps.Remote, "amaltheasessions.amalthea.dev differs", "--step operator --take-over"},
		},
		caused: append([]string{"rclone-storage-class"}, emptySpace...), mend: byFix, mended: true,
	},
	"crd-drift": {
		says: []fault{
			{
				"session-crd-equal", steps.Remote, "amaltheasessions.amalthea.dev differs",
				"--version 0.30.2 --show-only templates/amaltheasession-crd.yaml | kubectl --context",
			},
			{"operator-version", steps.Remote, "remote: 0.30.2 (label", "--show-only templates/amaltheasession-crd.yaml"},
			{
				"session-crd-owner", steps.Remote, "belongs to release renku-user-sessions/amalthea-sessions-1762000000",
				"agree on versions with the owner of that release",
			},
		},
		caused: append([]string{"rclone-storage-class"}, emptySpace...), mend: byDefinition, mended: true,
	},
	"quota-left-behind": {
		says: []fault{
			{
				"quota-free", steps.Remote, "ResourceQuota renku-user-sessions/demo-pool exists",
				"delete resourcequota demo-pool",
			},
		},
		caused: append([]string{"operator-ready"}, emptySpace...), mend: byFix, mended: true,
	},
	"driver-missing-on-node": {
		says: []fault{
			{
				"nodes", steps.Remote, "remote-worker-2 has the labels of the session nodes and the taint renku.io/dedicated",
				"set nodes.tolerations to renku.io/dedicated",
			},
		},
		mend: byToleration,
	},
	"helm-value-missing": {
		says: []fault{
			{
				"kubeconfigs-value", steps.Local, "dataService.remoteClustersKubeconfigSecretName is not set",
				"--set dataService.remoteClustersKubeconfigSecretName=renku-remote-clusters",
			},
		},
		mend: byFix, mended: true,
	},
	"slow":       {}, // 5 seconds are less than a check may take: all is found as on a fresh site
	"name-taken": {mend: byAnotherName},
	"tls-null":   {mend: byApply},
}

// standingFaults lists faults of an existing setup. The faults accumulate, so a single apply is
// enough for all of them.
var standingFaults = []struct {
	name string
	says []fault
}{
	{
		"restricted",
		[]fault{
			{
				"pod-security", steps.Remote, "renku-user-sessions enforces Pod Security level restricted",
				"pod-security.kubernetes.io/enforce=baseline",
			},
		},
	},
	{
		"cpu-quota",
		[]fault{{"other-quotas", steps.Remote, "quota project-quota has limits.cpu, but no LimitRange", "apply -f - <<EOF"}},
	},
	{"login-by-hand", []fault{
		{
			"redirect-uris", steps.Local, "notebooks.oidc.extraRedirectUris does not contain https://localhost:",
			"-f oidc-values.yaml",
		},
		{
			"web-origins", steps.Local, "notebooks.oidc.extraWebOrigins does not contain https://localhost:",
			"-f oidc-values.yaml",
		},
	}},
}

func openDemo(t *testing.T, box *clustertest.Sandbox, answers map[string]any) *engine.Session {
	t.Helper()
	s := stepstest.Open(t, box, renku.Guide(), assets, "demo", site(t, box, answers))
	s.Link().Path = "demo.yaml"
	return s
}

// reds returns the verdicts other than pass and skip, by "check@side".
func reds(t *testing.T, s *engine.Session) map[string]steps.Result {
	t.Helper()
	var out map[string]steps.Result
	for range 5 {
		out = map[string]steps.Result{}
		s.Forget()
		b, _ := s.Look(t.Context(), s.Guide().Cells())
		late := false
		for _, c := range s.Guide().Cells() {
			if v := b.Verdict(c); v.Status != steps.Pass && v.Status != steps.Skip {
				out[c.Check+"@"+string(c.Side)] = v
				late = late || v.Status == steps.Unknown && strings.Contains(v.Found, "answer")
			}
		}
		if !late { // an API server of a machine that is busy
			break
		}
	}
	return out
}

// added fails the test unless the verdicts that are in now but not in before are exactly the
// findings of a fault and the checks in caused.
func added(t *testing.T, before, now map[string]steps.Result, says []fault, caused []string) {
	t.Helper()
	for _, f := range says {
		v, ok := now[f.check+"@"+string(f.side)]
		if !ok || !strings.Contains(v.Found, f.found) || !strings.Contains(v.Fix, f.fix) {
			t.Errorf("%s says %q, want %q\nfix %q, want %q", f.check, v.Found, f.found, v.Fix, f.fix)
		}
	}
	for id, v := range now {
		check, _, _ := strings.Cut(id, "@")
		_, was := before[id]
		known := was
		for _, f := range says {
			known = known || f.check == check
		}
		for _, c := range caused {
			known = known || c == check
		}
		if !known {
			t.Errorf("%s is %s, which the fault does not explain: %s", id, v.Status, v.Found)
		}
	}
}

// liveFaults lists the fault that "make test" tests on real control planes, because it involves slow responses, which
// recorded states cannot contain.
var liveFaults = []string{"slow"}

func TestLiveFaults(t *testing.T) { stepstest.Live(t, "live", liveFaults, findsAndFixes) }

func TestVerifyLiveFaults(t *testing.T) {
	stepstest.Live(t, "live", stepstest.Except(siteFaults, liveFaults), findsAndFixes)
}

// findsAndFixes fails the test unless the checks report a fault and nothing else, and the printed
// fix corrects the fault.
func findsAndFixes(t *testing.T, box *clustertest.Sandbox, name string) {
	f := siteFaults[name]
	box.Seed(t, "renku")
	fresh := reds(t, openDemo(t, box, nil))
	box.SeedFault(t, "renku", name)
	s := openDemo(t, box, nil)
	now := reds(t, s)
	added(t, fresh, now, f.says, f.caused)
	if f.mend == nil || t.Failed() {
		return
	}
	var first steps.Result
	if len(f.says) > 0 {
		first = now[f.says[0].check+"@"+string(f.says[0].side)]
	}
	f.mend(t, box, s, first)
	if !f.mended {
		return
	}
	s.Forget()
	if v := passed(t, s, f.says[0].check, f.says[0].side); v.Status != steps.Pass {
		t.Errorf("after %q it is %s: %s", first.Fix, v.Status, v.Found)
	}
}

// byFix runs the printed fix: a command of carrick, Helm or kubectl.
func byFix(t *testing.T, box *clustertest.Sandbox, s *engine.Session, v steps.Result) {
	t.Helper()
	rest, isKubectl := strings.CutPrefix(v.Fix, "kubectl --context ")
	if !isKubectl {
		runFix(t, box, s, v.Fix)
		return
	}
	line, in, _ := strings.Cut(rest, "\n")
	in, _, _ = strings.Cut(in, "EOF\n")
	line, _, _ = strings.Cut(strings.TrimSuffix(line, "<<EOF"), "    #")
	words := strings.Fields(line)
	for _, side := range steps.Sides {
		if box.Contexts[string(side)] == words[0] {
			box.Run(t, string(side), in, words[1:]...)
		}
	}
}

// byDefinition replaces the remote CRD with the local CRD. The printed fix would use Helm to print
// the CRD from the chart of that version.
func byDefinition(t *testing.T, box *clustertest.Sandbox, _ *engine.Session, _ steps.Result) {
	t.Helper()
	const name = "amaltheasessions.amalthea.dev"
	spec := box.Run(t, clustertest.Local, "", "get", "crd", name, "-o", "jsonpath={.spec}")
	box.Run(
		t, clustertest.Remote,
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"`+name+`"},"spec":`+
			spec+"}",
		"apply", "--server-side", "--force-conflicts", "-f", "-",
	)
}

// byToleration sets the answer in the printed fix. The driver, which another user installed, is
// then missing on the node with that taint.
func byToleration(t *testing.T, _ *clustertest.Sandbox, s *engine.Session, _ steps.Result) {
	t.Helper()
	if err := s.Answer("nodes.tolerations", []string{"renku.io/dedicated"}); err != nil {
		t.Fatal(err)
	}
	if v := passed(t, s, "nodes", steps.Remote); v.Status != steps.Pass {
		t.Errorf("nodes: %s: %s", v.Status, v.Found)
	}
	v := verdict(t, s, "csi-on-nodes", steps.Remote)
	const want = `helm upgrade csi-rclone renku/csi-rclone -n csi-rclone --kube-context sandbox-remote --version 0.6.0 --reuse-values --set-json 'csiNodepluginRclone.tolerations=[{"key":"renku.io/dedicated","operator":"Exists"}]'`
	if v.Status != steps.Fail || !strings.Contains(v.Found, "remote-worker-2") || v.Fix != want {
		t.Errorf("csi-on-nodes: %s: %s\nfix %s", v.Status, v.Found, v.Fix)
	}
}

// byApply applies the whole guide, which handles the fault.
func byApply(t *testing.T, _ *clustertest.Sandbox, s *engine.Session, _ steps.Result) {
	t.Helper()
	stepstest.Apply(t, s)
	stepstest.Green(t, s)
}

// byAnotherName verifies that apply fails because the cluster's name is already used, and succeeds
// with another name.
func byAnotherName(t *testing.T, _ *clustertest.Sandbox, s *engine.Session, _ steps.Result) {
	t.Helper()
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Apply(t.Context(), p, steps.ApplyOptions{}, nil)
	if failed := (*engine.ActionError)(nil); !errors.As(err, &failed) || failed.Action != "register" ||
		!strings.Contains(err.Error(), "name") {
		t.Fatalf("with a name that is taken: %v", err)
	}
	t.Logf("it says: %v", err)
	s.Forget()
	if v := verdict(t, s, "cluster-name-free", steps.Local); v.Status != steps.Fail ||
		!strings.Contains(v.Fix, "cluster.name") {
		t.Errorf("cluster-name-free: %s: %s, fix %s", v.Status, v.Found, v.Fix)
	}
	if err := s.Answer("cluster.name", "Another name"); err != nil {
		t.Fatal(err)
	}
	stepstest.Apply(t, s)
	stepstest.Green(t, s)
}

func TestVerifyLiveFaultsThatBefallASetUp(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := seeded(t)
	answers := onSite(t, box, nil)
	s := openDemo(t, box, answers)
	stepstest.Apply(t, s)
	stepstest.Green(t, s)
	before := reds(t, s)
	var earlier []string // faults stay until the sandbox is reset, so a later one brings them back
	for _, f := range standingFaults {
		box.SeedFault(t, "renku", f.name)
		now := reds(t, s)
		added(t, before, now, f.says, earlier)
		byFix(t, box, s, now[f.says[0].check+"@"+string(f.says[0].side)])
		for _, said := range f.says {
			passed(t, s, said.check, said.side)
		}
		after := reds(t, s)
		added(t, before, after, nil, earlier)
		for _, said := range f.says {
			earlier = append(earlier, said.check)
		}
	}
}
