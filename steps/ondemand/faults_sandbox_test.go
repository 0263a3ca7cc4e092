package ondemand_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps"
	"carrick/steps/ondemand"
	"carrick/steps/stepstest"
)

// portal is what the sandbox has of a portal with a fault, and a link of its own, or
// one that takes on what stands there; keys are answered as a walk would.
func portal(t *testing.T, box *clustertest.Sandbox, fault string, adopted bool, keys ...string) *stepstest.Site {
	t.Helper()
	box.SeedFault(t, "ondemand", fault)
	given := stepstest.Given(t, box, ondemand.Guide(), nil)
	maps.DeleteFunc(given, func(key string, _ any) bool { return !slices.Contains(keys, key) })
	return stepstest.SiteOf(t, box, ondemand.Guide(), assets, adopted, given)
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

func TestFaultsOfAPortalAreNamedAndMended(t *testing.T) {
	box := clustertest.Start(t)
	for _, name := range names(onPortal) {
		t.Run(name, func(t *testing.T) {
			stepstest.Third(t)
			f := onPortal[name]
			x := portal(t, box, name, f.adopted)
			if name == "by-hand" {
				for id, v := range x.Reds() {
					if v.Status != steps.Warn {
						t.Errorf("%s: %s: %s", id, v.Status, v.Found)
					}
				}
			}
			finds(x, f.says)
		})
	}
}

// finds looks for what is to be said, and does what the fixes say.
func finds(x *stepstest.Site, says []said) {
	was := map[string]steps.Result{}
	for _, s := range says {
		was[s.check] = x.Named(s.check, s.found, s.fix)
	}
	for _, s := range says {
		if s.mended {
			x.Mends(s.check, was[s.check])
		}
	}
}

func TestFaultsThatShowWithAnAnswer(t *testing.T) {
	box := clustertest.Start(t)
	for _, name := range names(withAnswers) {
		t.Run(name, func(t *testing.T) {
			stepstest.Third(t)
			f := withAnswers[name]
			x := portal(t, box, name, name == "namespace-unbound", f.keys...)
			if f.first != "" {
				x.Fix("carrick apply demo.yaml --step " + f.first)
				x.Forget()
			}
			if v := x.Of(f.says.check); v.Status.Holds() || v.Status == steps.Skip || v.Fix == "" || !strings.Contains(v.Found, f.says.found) {
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
