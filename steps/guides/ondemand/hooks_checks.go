package ondemand

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"carrick/cluster/host"
	"carrick/steps"
	"carrick/steps/check"
)

const (
	portalSource = "OSC/ondemand: ood-portal-generator/share/ood_portal_example.yml, mod_ood_proxy/lib/ood/nginx_stage.lua"
	stageSource  = "OSC/ondemand: nginx_stage/lib/nginx_stage/generators/pun_config_generator.rb"
)

func hookChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "pre-hook-set", Title: "the portal runs a hook as root", On: steps.Local, FixedBy: "portal",
			Needs: []string{"portal-file"},
			Why: "pun_pre_hook_root_cmd is the only place from which users' namespaces come; without it nothing is " +
				"ever made, and nothing says so",
			References: []string{portalSource}, Run: preHookSet,
		},
		{
			Name: "pre-hook-safe", Title: "root alone can change that hook, and run it", On: steps.Local, FixedBy: "pre-hook",
			Needs: []string{"pre-hook-set"},
			Why: "it runs as root at each login: who may write it is root. One that can't be run is passed over " +
				"without a word",
			References: []string{stageSource}, Run: preHookSafe,
		},
		{
			Name: "pre-hook-does", Title: "that hook runs upstream's hooks, with hook.env and root's kubeconfig",
			On: steps.Local, FixedBy: "pre-hook", Needs: []string{"pre-hook-set"},
			Why: "what is left out there is missing for each user: the namespace, its level of pod security, " +
				"or the tokens",
			References: []string{page, "OSC/ondemand: hooks/k8s-bootstrap"}, Run: preHookDoes,
		},
		{
			Name: "portal-tokens", Title: "the portal hands the tokens of a login to the hook", On: steps.Local,
			FixedBy: "portal", Needs: []string{"pre-hook-set"}, When: withOIDC,
			Why: "set-k8s-creds.sh puts OIDC_ACCESS_TOKEN and OIDC_REFRESH_TOKEN into the user's kubeconfig; what it " +
				"is not given, it writes there empty. mod_auth_openidc passes the refresh token only where " +
				"OIDCPassRefreshToken is on",
			References: []string{portalSource, "OSC/ondemand: hooks/k8s-bootstrap/set-k8s-creds.sh"}, Run: portalTokens,
		},
		{
			Name: "portal-applied", Title: "Apache's configuration has it", On: steps.Local, Needs: []string{"pre-hook-set"},
			FixedBy:    "portal-update",
			Why:        "ood_portal.yml is read by update_ood_portal alone; Apache knows of it after that, and after a restart",
			References: []string{portalSource}, Run: portalApplied,
		},
		{
			Name: "portal-runs", Title: "Apache was started after that", On: steps.Local, Needs: []string{"portal-applied"},
			Why:        "it reads its configuration when it starts",
			References: []string{portalSource}, Run: portalRuns,
		},
		{
			Name: "selinux", Title: "SELinux lets Open OnDemand use Kubernetes", On: steps.Local, FixedBy: "selinux-boolean",
			Why: "the boolean ondemand_use_kubernetes is off as shipped; where SELinux enforces, kubectl is then " +
				"refused in ways that look like a network fault",
			References: []string{"OSC/ondemand: packaging/rpm/ondemand-selinux.te"}, Run: selinuxAllows,
		},
		{
			Name: "hook-log", Title: "no hook failed since it was last changed", On: steps.Local,
			Needs: []string{"pre-hook-set"},
			Why: "a hook's output and exit status are swallowed: the login goes on. Only syslog has a line, under the " +
				"tag ood_nginx_stage",
			References: []string{stageSource}, Run: hookLog,
		},
	}
}

func preHookSet(ctx context.Context, e steps.Env) steps.Result {
	_, values, err := openPortal(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	v, _ := values["pun_pre_hook_root_cmd"].(string)
	switch {
	case v == "":
		return steps.Undone("pun_pre_hook_root_cmd is not set in " + portalFile)
	case !strings.HasPrefix(v, "/"):
		return steps.Failed("pun_pre_hook_root_cmd is "+shownWord(v)+", not an absolute path", "")
	}
	return steps.Passed("%s", shownWord(v))
}

func preHookSafe(ctx context.Context, e steps.Env) steps.Result {
	at, err := hookInUse(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	info, err := e.Host.Stat(ctx, at)
	fix := permissionFix(e, at, "chown root:root %s && chmod 0700 %s    # read it first: root runs what is in it")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return steps.Failed("there is no "+shownWord(at)+", which the portal runs", "")
	case err != nil:
		return steps.Errored(err)
	case !info.Mode.IsRegular():
		return steps.Failed(shownWord(at)+" is not a file", "")
	case info.Mode.Perm()&0o100 == 0:
		return steps.Failed(fmt.Sprintf("%s has mode %04o: it can't be run", shownWord(at), info.Mode.Perm()), fix)
	}
	switch problem, err := rootsProgram(ctx, e, at); {
	case err != nil:
		return steps.Errored(err)
	case problem != "":
		return steps.Failed(problem, fix)
	}
	switch problem, fix, err := upstreamUnsafe(ctx, e, at); {
	case err != nil:
		return steps.Errored(err)
	case problem != "":
		return steps.Failed(problem, fix).WithoutAction()
	}
	return steps.Passed("%s, mode %04o", at, info.Mode.Perm())
}

func preHookDoes(ctx context.Context, e steps.Env) steps.Result {
	at, err := hookInUse(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	b, err := e.Host.Read(ctx, at)
	if errors.Is(err, fs.ErrNotExist) {
		return steps.Skipped("there is no %s", shownWord(at))
	}
	if err != nil {
		return steps.Errored(err)
	}
	does, err := readHook(string(b))
	switch {
	case errors.Is(err, errNoShell):
		return steps.Skipped("%s: %s", shownWord(at), err)
	case err != nil:
		return steps.Errored(fmt.Errorf("%s: %w", at, err))
	}
	var lacks []string
	ask := func(part, why string) {
		if !strings.Contains(does.words, part) {
			lacks = append(lacks, why)
		}
	}
	ask(bootstrapName, "it does not run k8s-bootstrap-ondemand.sh: users get no namespace")
	if strings.Contains(does.words, wrongHookEnv) {
		lacks = append(lacks, "it hands on "+wrongHookEnv+", which is not hook.env")
	} else {
		ask("hook.env", "it does not hand on "+hookEnv)
	}
	if withOIDC(e) {
		ask("set-k8s-creds.sh", "it does not run set-k8s-creds.sh: users' tokens get nowhere")
	}
	if len(lacks) > 0 {
		return steps.Failed(shownWord(at)+": "+strings.Join(lacks, "; "), "")
	}
	if r := upstreamWorks(ctx, e, does); r.Status != steps.Pass {
		return r
	}
	level := e.Answers.Text("policies.level")
	switch {
	case !strings.Contains(does.words, "pod-security.kubernetes.io/enforce="):
		lacks = append(lacks, "it sets no level of pod security: users' namespaces have the cluster's default, "+
			"which may be none")
	case !strings.Contains(does.words, "pod-security.kubernetes.io/enforce="+level):
		lacks = append(lacks, "it sets another level of pod security than "+level)
	}
	if does.hides {
		lacks = append(lacks, "it continues after "+bootstrapName+" has failed: Open OnDemand does not log the failure")
	}
	if len(lacks) > 0 {
		return steps.Warned(shownWord(at)+": "+strings.Join(lacks, "; "), e.ApplyStep("hooks"))
	}
	return steps.Passed("%s, with the level %s of pod security", at, level)
}

func portalTokens(ctx context.Context, e steps.Env) steps.Result {
	_, values, err := openPortal(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	var lacks []string
	have := exported(values)
	for _, name := range tokenExports {
		if !slices.Contains(have, name) {
			lacks = append(lacks, "pun_pre_hook_exports lacks "+name)
		}
	}
	inner, _ := values["oidc_settings"].(map[string]any)
	if v, ok := inner["OIDCPassRefreshToken"]; !ok || !switchedOn(v) {
		lacks = append(lacks, "oidc_settings has no OIDCPassRefreshToken: 'On', so there is no refresh token to hand on")
	}
	scope, _ := values["oidc_scope"].(string)
	opened := scope == "" || slices.Contains(strings.Fields(scope), "openid")
	if !opened {
		lacks = append(lacks, "oidc_scope is "+shownWord(scope)+", without openid: the provider issues no ID token")
	}
	switch {
	case len(lacks) > 0 && (opened || len(lacks) > 1):
		return steps.Failed(strings.Join(lacks, "; "), "")
	case len(lacks) > 0:
		return steps.Failed(lacks[0], scopeFix(ctx, e, scope)).WithoutAction()
	}
	return steps.Passed("%s, and the refresh token is passed", strings.Join(tokenExports, " and "))
}

// plainScope is a value of oidc_scope that needs no quoting in sed and in YAML.
var plainScope = regexp.MustCompile(`^[A-Za-z0-9_. -]+$`)

// scopeFix is how to add openid to the portal's oidc_scope, which carrick does not set.
func scopeFix(ctx context.Context, e steps.Env, scope string) string {
	unit, _, err := apache(ctx, e)
	if err != nil {
		unit = "httpd"
	}
	then := " && " + updatePortal + " && systemctl restart " + unit
	if !plainScope.MatchString(scope) {
		return onWebNode("vi " + portalFile + "    # add openid to oidc_scope; then" + strings.TrimPrefix(then, " &&"))
	}
	return onWebNode(
		`sed -i -E 's/^oidc_scope:.*/oidc_scope: "openid ` + strings.Join(strings.Fields(scope), " ") + `"/' ` +
			portalFile + then,
	)
}

func portalApplied(ctx context.Context, e steps.Env) steps.Result {
	unit, file, err := apache(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	run := updatePortal + " && systemctl restart " + unit
	if file == "" {
		if e.Host.IsFolder() {
			return steps.Skipped("a folder stands for the web node, and Apache's configuration is not in it; run there: %s", run)
		}
		return steps.Failed("there is neither "+strings.Join(apacheFiles, " nor "), "")
	}
	b, err := e.Host.Read(ctx, file)
	if err != nil {
		return steps.Errored(err)
	}
	at, err := hookInUse(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	_, values, err := openPortal(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	for _, want := range []string{at, strings.Join(exported(values), ",")} {
		if !strings.Contains(string(b), want) {
			return steps.Failed(file+" knows nothing of "+shownWord(want), onWebNode(run))
		}
	}
	return steps.Passed("%s names %s", file, at)
}

const selinuxBoolean = "ondemand_use_kubernetes"

func selinuxAllows(ctx context.Context, e steps.Env) steps.Result {
	if e.Host.IsFolder() {
		r, _ := inFolder(host.ErrFolder, "getenforce; getsebool "+selinuxBoolean)
		return r
	}
	mode, err := e.Own.Text("selinux")
	switch {
	case err != nil:
		return steps.Errored(err)
	case mode == noLinux:
		return steps.Passed("there is no SELinux on the web node")
	case mode == permits:
		return steps.Passed("SELinux does not enforce")
	}
	out, err := check.CommandOutput(ctx, e.Host, 30*time.Second, "getsebool", selinuxBoolean)
	switch {
	case err != nil && errors.As(err, new(*exec.ExitError)):
		return steps.Failed(
			"SELinux enforces, and knows no boolean "+selinuxBoolean+": the package ondemand-selinux is not installed",
			onWebNode("dnf install ondemand-selinux && setsebool -P "+selinuxBoolean+" on"),
		)
	case err != nil:
		return steps.Errored(err)
	case strings.HasSuffix(strings.TrimSpace(out), "on"):
		return steps.Passed("SELinux enforces, and %s is on", selinuxBoolean)
	}
	return steps.Failed("SELinux enforces, and "+selinuxBoolean+" is off", "")
}
