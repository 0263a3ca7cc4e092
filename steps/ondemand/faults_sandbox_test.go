package ondemand_test

import (
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps"
	"carrick/steps/ondemand"
	"carrick/steps/stepstest"
)

// site is a portal of the sandbox and a link to its cluster.
type site struct {
	*steps.Session
	t    *testing.T
	root string // the folder that stands for the web node
}

// portal is what the sandbox has of a portal with a fault, and a link of its own, or
// one that takes on what stands there; keys are answered as a walk would.
func portal(t *testing.T, box *clustertest.Sandbox, fault string, adopted bool, keys ...string) *site {
	t.Helper()
	box.SeedFault(t, "ondemand", fault)
	given := stepstest.Given(t, box, ondemand.Guide(), nil)
	maps.DeleteFunc(given, func(key string, _ any) bool { return !slices.Contains(keys, key) })
	x := &site{t: t, root: box.Hosts[clustertest.Local], Session: stepstest.Open(t, box, ondemand.Guide(), assets, "demo", given)}
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

// said is what a check has to say of something that is wrong, and whether its fix,
// as it is printed, is run and has to make it hold.
type said struct {
	check, found, fix string
	mended            bool
}

// onPortal are the faults of the sandbox: which checks find them.
var onPortal = map[string]struct {
	adopted bool // a set-up stands, and is adopted
	says    []said
}{
	"by-hand":               {true, nil},
	"admin-kubeconfig":      {true, []said{{"root-identity", "acts as sandbox-remote-admin of system:masters", "--step kubectl", true}}},
	"auth-typo":             {true, []said{{"auth-type", "job.auth.type is odic, as the published page has it", "--step clusterfile", true}}},
	"ca-missing":            {true, []said{{"ca-file", "there is no /etc/ood/hooks/cluster-ca.crt", "--step kubectl", true}}},
	"hook-env-comment":      {true, []said{{"hook-env-lines", "the comment is indented", "vi +1", false}}},
	"hook-env-crlf":         {true, []said{{"hook-env-lines", "ends as on Windows (CR LF)", hookEnvPath, true}}},
	"hook-env-readable":     {true, []said{{"hook-env-private", "has mode 0644", "chmod 0600", true}}},
	"hook-not-executable":   {true, []said{{"pre-hook-safe", "it can't be run", "chmod 0700", true}}},
	"hooks-env":             {true, []said{{"hook-env", "hooks.env was edited, and nothing reads it", "install -m 0600", true}}},
	"issuer-down":           {true, []said{{"issuer", "was refused", "curl -sS", false}}},
	"kubectl-missing":       {true, []said{{"kubectl-bin", "there is no /usr/bin/kubectl", "--step kubectl", false}, {"kubectl-there", "there is no /usr/bin/kubectl", "sha256sum --check", false}}},
	"network-shut":          {true, []said{{"allow-cidr", "NETWORK_POLICY_ALLOW_CIDR is 127.0.0.1/32", "--step hooks", true}}},
	"no-endpoint":           {true, []said{{"endpoint", "has no job.server", "--step clusterfile", true}}},
	"no-pre-hook":           {true, []said{{"pre-hook-set", "pun_pre_hook_root_cmd is not set", "--step hooks", true}}},
	"pod-security-policies": {true, []said{{"no-psp", "the hook ends before it has made anything", "--step hooks", true}}},
	"prefix-differs":        {true, []said{{"prefixes-agree", `and NAMESPACE_PREFIX in hook.env is "ood-"`, "--step hooks", true}}},
	"renewal-forbidden":     {true, []said{{"renew-role", "lets it create serviceaccounts/token", "--step token", true}, {"root-renews", "it may not create serviceaccounts/token", "--step token", true}}},
	"role-narrowed":         {true, []said{{"role-of-hooks", "ClusterRole ondemand lacks", "--step bootstrap", true}, {"root-rights", "rolebindings", "--step bootstrap", true}}},
	"tilde":                 {true, []said{{"config-file", `job.config_file is "~/.kube/config"`, "--step clusterfile", true}}},
	"token-endpoint":        {true, []said{{"hook-env-oidc", "a token endpoint: the issuer is", "--step hooks", true}}},
	"token-expired":         {true, []said{{"root-token-lasts", "it can't renew itself", "--step token", true}}},
	"username-prefixed":     {false, []said{{"server-username", "--oidc-username-prefix is not set", "--oidc-username-prefix=-", false}}},
	"reaper-everywhere": {false, []said{
		{"reaper-narrow", "lets it delete pods, Services, ConfigMaps and Secrets in every namespace", "--set config.reapNamespaces=false", false},
		{"reaper-values", "where the chart ignores them", "--set config.reapNamespaces=false", false},
	}},
	"page": {true, []said{
		{"hook-env", "hooks.env was edited, and nothing reads it", "install -m 0600", true},
		{"hook-env-private", "has mode 0644", "chmod 0600", true},
		{"auth-type", "odic, as the published page has it", "--step clusterfile", true},
		{"config-file", `"~/.kube/config", which kubectl takes for a folder`, "--step clusterfile", true},
		{"renew-role", "lets it create serviceaccounts/token", "--step token", true},
		{"root-renews", "it may not create serviceaccounts/token", "--step token", true},
		{"renewal-there", "renews as the published page has it", "--step token", true},
		{"root-kubeconfig-static", "holds the token itself", "--step kubectl", true},
		{"renewal-published", "/etc/cron.d/renew-ondemand-token", "config unset users.ondemand@kubernetes.token", false},
		{"reaper-values", "where the chart ignores them", "--set config.reapNamespaces=false", false},
		{"reaper-narrow", "in every namespace", "--set config.reapNamespaces=false", false},
	}},
}

const hookEnvPath = "/etc/ood/config/hook.env"

// withAnswers are faults that show only where something is asked for or given.
var withAnswers = map[string]struct {
	keys  []string
	first string // the step that is applied before
	says  said
}{
	"prometheus-empty":  {[]string{"idle.use", "idle.source"}, "", said{check: "prometheus-knows-pods"}},
	"namespace-unbound": {[]string{"walltime.use", "walltime.source"}, "walltime", said{check: "reaper-bound", found: "lack the RoleBinding"}},
	"registry-refuses":  {[]string{"registry.use", "registry.host", "registry.user", "registry.password", "registry.ca"}, "registry", said{check: "registry-login"}},
}

// elsewhere are faults that only a person's token shows.
var elsewhere = []string{"no-audience"}

func TestEveryFaultOfThePortalIsTested(t *testing.T) {
	there := clustertest.Start(t).Faults(t, "ondemand")
	for _, name := range names(there) {
		_, plain := onPortal[name]
		_, asked := withAnswers[name]
		if !plain && !asked && !slices.Contains(elsewhere, name) {
			t.Errorf("no test has the fault %s: %s", name, there[name])
		}
	}
	for _, name := range append(names(onPortal), names(withAnswers)...) {
		if there[name] == "" {
			t.Errorf("the sandbox has no fault %s", name)
		}
	}
}

// of is the verdict of a check, on the side where it says something.
func (x *site) of(check string) steps.Result {
	x.t.Helper()
	c, step := x.Guide().Check(check)
	if c == nil {
		x.t.Fatalf("there is no check %s", check)
	}
	b, _ := x.Look(x.t.Context(), x.Guide().Cells())
	return b.Verdict(steps.Cell{Step: step.Name, Check: check, Side: c.On})
}

func TestFaultsOfAPortalAreNamedAndMended(t *testing.T) {
	box := clustertest.Start(t)
	for _, name := range names(onPortal) {
		t.Run(name, func(t *testing.T) {
			f := onPortal[name]
			x := portal(t, box, name, f.adopted)
			if name == "by-hand" {
				for id, v := range x.reds() {
					if v.Status != steps.Warn {
						t.Errorf("%s: %s: %s", id, v.Status, v.Found)
					}
				}
			}
			x.finds(f.says)
		})
	}
}

// finds looks for what is to be said, and does what the fixes say.
func (x *site) finds(says []said) {
	x.t.Helper()
	was := map[string]steps.Result{}
	for _, s := range says {
		v := x.of(s.check)
		was[s.check] = v
		if (v.Status != steps.Fail && v.Status != steps.Warn && v.Status != steps.Unknown) || !strings.Contains(v.Found, s.found) || !strings.Contains(v.Fix, s.fix) {
			x.t.Errorf("%s is %s: %q, want %q\nfix %q, want %q", s.check, v.Status, v.Found, s.found, v.Fix, s.fix)
		}
	}
	for _, s := range says {
		if !s.mended {
			continue
		}
		x.Forget()
		if x.of(s.check).Status == steps.Pass { // by the fix of another
			continue
		}
		x.fix(was[s.check].Fix)
		x.Forget()
		if v := x.of(s.check); v.Status != steps.Pass && (v.Status != steps.Skip || strings.Contains(v.Found, "says nothing before")) {
			x.t.Errorf("%s after %q: %s: %s", s.check, was[s.check].Fix, v.Status, v.Found)
		}
	}
}

var applyLine = regexp.MustCompile(`carrick apply \S+ --step (\S+)`)

// fix does as a fix says: carrick by its engine, the web node's commands by a shell,
// within the folder that stands for it.
func (x *site) fix(text string) {
	x.t.Helper()
	if line, ok := strings.CutPrefix(text, "run on the web node: "); ok {
		line = strings.ReplaceAll(line, "/etc/ood/", x.root+"/etc/ood/")
		if out, err := exec.CommandContext(x.t.Context(), "sh", "-c", strings.ReplaceAll(line, "-o root -g root ", "")).CombinedOutput(); err != nil {
			x.t.Errorf("%s: %v: %s", line, err, out)
		}
		return
	}
	all := applyLine.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		x.t.Errorf("the fix can't be run: %s", text)
		return
	}
	var do []string
	for _, m := range all {
		do = append(do, m[1])
	}
	p, err := x.Plan(x.t.Context(), steps.Scope{Steps: do})
	if err == nil {
		err = x.Apply(x.t.Context(), p, steps.ApplyOptions{TakeOver: true, Replace: true}, nil)
	}
	if err != nil {
		x.t.Errorf("%s: %v", text, err)
	}
}

func TestFaultsThatShowWithAnAnswer(t *testing.T) {
	box := clustertest.Start(t)
	for _, name := range names(withAnswers) {
		t.Run(name, func(t *testing.T) {
			f := withAnswers[name]
			x := portal(t, box, name, name == "namespace-unbound", f.keys...)
			if f.first != "" {
				x.fix("carrick apply demo.yaml --step " + f.first)
				x.Forget()
			}
			if v := x.of(f.says.check); v.Status.Holds() || v.Status == steps.Skip || v.Fix == "" || !strings.Contains(v.Found, f.says.found) {
				t.Errorf("%s is %s: %s; fix %q", f.says.check, v.Status, v.Found, v.Fix)
			} else {
				t.Logf("%s: %s; fix %s", v.Status, v.Found, v.Fix)
			}
		})
	}
}

func names[V any](of map[string]V) []string {
	var out []string
	for name := range of {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
