package ondemand_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/ondemand"
	"carrick/steps/stepstest"
)

// portal returns a portal with a fault in the sandbox. The link is a new one, or adopts the existing setup. The
// questions in keys get the answers of the demo.
func portal(t *testing.T, box *clustertest.Sandbox, fault string, adopted bool, keys ...string) *stepstest.Site {
	t.Helper()
	box.SeedFault(t, "ondemand", fault)
	given := stepstest.Given(t, box, ondemand.Guide(), nil)
	maps.DeleteFunc(given, func(key string, _ any) bool { return !slices.Contains(keys, key) })
	return stepstest.SiteOf(t, box, ondemand.Guide(), assets, adopted, given)
}

// onPortal maps the sandbox faults that a printed fix corrects to the checks that find them. The findings of other
// faults are in their recorded states.
var onPortal = map[string]struct {
	adopted bool // a set-up exists, and is adopted
	says    []stepstest.Finding
}{
	"by-hand": {true, nil},
	"admin-kubeconfig": {
		true,
		[]stepstest.Finding{
			{
				Check: "root-identity", Found: "acts as sandbox-remote-admin of system:masters", Fix: "--step kubectl", Fixed: true,
			},
		},
	},
	"auth-typo": {
		true,
		[]stepstest.Finding{
			{
				Check: "auth-type", Found: "job.auth.type is odic, a typo from the published guide", Fix: "--step clusterfile",
				Fixed: true,
			},
		},
	},
	"ca-missing": {
		true,
		[]stepstest.Finding{
			{Check: "ca-file", Found: "/etc/ood/hooks/cluster-ca.crt does not exist", Fix: "--step kubectl", Fixed: true},
		},
	},
	"hook-env-crlf": {
		true,
		[]stepstest.Finding{
			{Check: "hook-env-lines", Found: "has a Windows line ending (CR LF)", Fix: hookEnvPath, Fixed: true},
		},
	},
	"hook-env-readable": {
		true, []stepstest.Finding{{Check: "hook-env-private", Found: "has mode 0644", Fix: "chmod 0600", Fixed: true}},
	},
	"hook-not-executable": {
		true, []stepstest.Finding{{Check: "pre-hook-safe", Found: "and cannot be executed", Fix: "chmod 0700", Fixed: true}},
	},
	"hooks-env": {
		true,
		[]stepstest.Finding{
			{Check: "hook-env", Found: "hooks.env is edited, but no program reads it", Fix: "install -m 0600", Fixed: true},
		},
	},
	"network-shut": {
		true,
		[]stepstest.Finding{
			{Check: "allow-cidr", Found: "NETWORK_POLICY_ALLOW_CIDR is 127.0.0.1/32", Fix: "--step hooks", Fixed: true},
		},
	},
	"no-endpoint": {
		true, []stepstest.Finding{{Check: "endpoint", Found: "has no job.server", Fix: "--step clusterfile", Fixed: true}},
	},
	"no-pre-hook": {
		true,
		[]stepstest.Finding{
			{Check: "pre-hook-set", Found: "pun_pre_hook_root_cmd is not set", Fix: "--step hooks", Fixed: true},
		},
	},
	"pod-security-policies": {
		true,
		[]stepstest.Finding{
			{Check: "psp-disabled", Found: "the hook fails before it creates anything", Fix: "--step hooks", Fixed: true},
		},
	},
	"prefix-differs": {
		true,
		[]stepstest.Finding{
			{
				Check: "prefixes-match", Found: `but NAMESPACE_PREFIX in hook.env is "ood-"`,
				Fix: `set users.namespace-prefix to "ood-", the value in hook.env, or to "user-"`,
			},
		},
	},
	"renewal-forbidden": {
		true,
		[]stepstest.Finding{
			{Check: "renew-role", Found: "allows it to create serviceaccounts/token", Fix: "--step token", Fixed: true},
			{Check: "root-renews", Found: "root cannot create serviceaccounts/token", Fix: "--step token", Fixed: true},
		},
	},
	"role-narrowed": {
		true,
		[]stepstest.Finding{
			{Check: "hooks-role", Found: "ClusterRole ondemand is missing rules", Fix: "--step bootstrap", Fixed: true},
			{Check: "root-permissions", Found: "rolebindings", Fix: "--step bootstrap", Fixed: true},
		},
	},
	"tilde": {
		true,
		[]stepstest.Finding{
			{Check: "config-file", Found: `job.config_file is "~/.kube/config"`, Fix: "--step clusterfile", Fixed: true},
		},
	},
	"token-endpoint": {
		true,
		[]stepstest.Finding{
			{Check: "hook-env-oidc", Found: "a token endpoint. The issuer is", Fix: "--step hooks", Fixed: true},
		},
	},
	"token-expired": {
		true,
		[]stepstest.Finding{{Check: "root-token-lasts", Found: "can no longer be used to request a new token", Fix: "--step token", Fixed: true}},
	},
	"page": {true, []stepstest.Finding{
		{Check: "hook-env", Found: "hooks.env is edited, but no program reads it", Fix: "install -m 0600", Fixed: true},
		{Check: "hook-env-private", Found: "has mode 0644", Fix: "chmod 0600", Fixed: true},
		{Check: "auth-type", Found: "odic, a typo from the published guide", Fix: "--step clusterfile", Fixed: true},
		{
			Check: "config-file", Found: `"~/.kube/config", but kubectl does not expand ~`, Fix: "--step clusterfile",
			Fixed: true,
		},
		{Check: "renew-role", Found: "allows it to create serviceaccounts/token", Fix: "--step token", Fixed: true},
		{Check: "root-renews", Found: "root cannot create serviceaccounts/token", Fix: "--step token", Fixed: true},
		{Check: "renewal-installed", Found: "renews the token as in the published guide", Fix: "--step token", Fixed: true},
		{Check: "root-kubeconfig-static", Found: "contains an inline token", Fix: "--step kubectl", Fixed: true},
		{
			Check: "no-published-renewal", Found: "/etc/cron.d/renew-ondemand-token",
			Fix: "config unset users.ondemand@kubernetes.token",
		},
		{Check: "reaper-values", Found: "the chart reads only values under config:", Fix: "--set config.reapNamespaces=false"},
		{Check: "reaper-scope", Found: "in every namespace", Fix: "--set config.reapNamespaces=false"},
	}},
}

const hookEnvPath = "/etc/ood/config/hook.env"

// withAnswers lists faults that only checks of optional parts find. The answers to keys enable these parts.
var withAnswers = map[string]struct {
	keys  []string
	first string // the step that is applied before
	says  stepstest.Finding
}{
	"prometheus-empty": {[]string{"idle.enabled", "idle.source"}, "", stepstest.Finding{Check: "prometheus-knows-pods"}},
	"namespace-unbound": {
		[]string{"walltime.enabled", "walltime.source"},
		"walltime",
		stepstest.Finding{Check: "reaper-bound", Found: "have no RoleBinding"},
	},
	"registry-refuses": {
		[]string{"registry.enabled", "registry.host", "registry.user", "registry.password", "registry.ca"},
		"registry",
		stepstest.Finding{Check: "registry-login"},
	},
}

// liveFaults lists the fault that "make test" tests on real control planes, because it involves RBAC.
var liveFaults = []string{"renewal-forbidden"}

func TestLiveFaults(t *testing.T) { stepstest.Live(t, "live", liveFaults, findsAndFixes) }

func TestVerifyLiveFaults(t *testing.T) {
	stepstest.Live(t, "live", stepstest.Except(onPortal, liveFaults), findsAndFixes)
}

// findsAndFixes fails the test unless the checks report a fault and their printed fixes correct it.
func findsAndFixes(t *testing.T, box *clustertest.Sandbox, name string) {
	f := onPortal[name]
	x := portal(t, box, name, f.adopted)
	if name == "by-hand" {
		for id, v := range x.Reds() {
			if v.Status != steps.Warn {
				t.Errorf("%s: %s: %s", id, v.Status, v.Found)
			}
		}
	}
	x.Finds(f.says)
}

// If hook.env and the cluster file have different prefixes, carrick uses neither until an answer names the correct
// prefix.
func TestVerifyLivePrefixesThatDifferAreAskedFor(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := clustertest.Start(t)
	x := portal(t, box, "prefix-differs", true)
	for _, action := range []string{"hook-env", "cluster-file"} {
		p, err := x.Plan(t.Context(), engine.Scope{Actions: []string{action}})
		if err != nil || len(p.Actions) != 1 ||
			!strings.Contains(p.Actions[0].Pending, `NAMESPACE_PREFIX is "ood-" in hook.env`) {
			t.Errorf("action %s takes one of them: %+v, %v", action, p, err)
		}
	}
	if err := x.Answer("users.namespace-prefix", "user-"); err != nil {
		t.Fatal(err)
	}
	x.Fix(x.Of("prefixes-match").Fix)
	x.Holds("prefixes-match", "the answer user-")
}

func TestVerifyLiveFaultsThatShowWithAnAnswer(t *testing.T) {
	stepstest.Live(t, "live", names(withAnswers), func(t *testing.T, box *clustertest.Sandbox, name string) {
		f := withAnswers[name]
		x := portal(t, box, name, name == "namespace-unbound", f.keys...)
		if f.first != "" {
			x.Fix("carrick apply demo.yaml --step " + f.first)
			x.Forget()
		}
		if v := x.Of(f.says.Check); v.Status.Holds() || v.Status == steps.Skip || v.Fix == "" ||
			!strings.Contains(v.Found, f.says.Found) {
			t.Errorf("%s is %s: %s; fix %q", f.says.Check, v.Status, v.Found, v.Fix)
		} else {
			t.Logf("%s: %s; fix %s", v.Status, v.Found, v.Fix)
		}
	})
}

func names[V any](of map[string]V) []string {
	var out []string
	for name := range of {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
