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
			Name: "pre-hook-set", Title: "The portal runs a hook as root", On: steps.Local, FixedBy: "portal",
			Needs: []string{"portal-file"},
			Why: "Only the hook in pun_pre_hook_root_cmd creates users' namespaces. Without it, users get no namespace, and " +
				"no error is reported.",
			References: []string{portalSource}, Run: preHookSet,
		},
		{
			Name: "pre-hook-safe", Title: "Only root can change the hook and execute it", On: steps.Local, FixedBy: "pre-hook",
			Needs: []string{"pre-hook-set"},
			Why: "The hook runs as root at each login, so anyone who can write to it can become root. The portal " +
				"silently skips a hook that it cannot execute.",
			References: []string{stageSource}, Run: preHookSafe,
		},
		{
			Name: "pre-hook-works", Title: "The hook runs upstream's hooks with hook.env",
			On: steps.Local, FixedBy: "pre-hook", Needs: []string{"pre-hook-set"},
			Why:        "An incomplete hook leaves users without a namespace, a Pod Security level or their tokens.",
			References: []string{page, "OSC/ondemand: hooks/k8s-bootstrap"}, Run: preHookDoes,
		},
		{
			Name: "portal-tokens", Title: "The portal passes the tokens of a login to the hook", On: steps.Local,
			FixedBy: "portal", Needs: []string{"pre-hook-set"}, When: withOIDC,
			Why: "set-k8s-creds.sh writes the access token and the refresh token into kubeconfigs, even if empty. The " +
				"latter requires OIDCPassRefreshToken in mod_auth_openidc.",
			References: []string{portalSource, "OSC/ondemand: hooks/k8s-bootstrap/set-k8s-creds.sh"}, Run: portalTokens,
		},
		{
			Name: "portal-applied", Title: "Apache's configuration contains the hook", On: steps.Local,
			Needs:   []string{"pre-hook-set"},
			FixedBy: "portal-update",
			Why: "update_ood_portal generates Apache's configuration from ood_portal.yml. Apache uses the new " +
				"configuration only after a restart.",
			References: []string{portalSource}, Run: portalApplied,
		},
		{
			Name: "portal-restarted", Title: "Apache has started since its configuration changed", On: steps.Local,
			Needs:      []string{"portal-applied"},
			Why:        "Apache reads its configuration only when it starts.",
			References: []string{portalSource}, Run: portalRuns,
		},
		{
			Name: "selinux", Title: "SELinux allows Open OnDemand to use Kubernetes", On: steps.Local,
			FixedBy: "selinux-boolean",
			Why: "The boolean ondemand_use_kubernetes is off by default. If SELinux is enforcing, kubectl then fails " +
				"with errors that look like network problems.",
			References: []string{"OSC/ondemand: packaging/rpm/ondemand-selinux.te"}, Run: selinuxAllows,
		},
		{
			Name: "hook-log", Title: "The hook has not failed since its last change", On: steps.Local,
			Needs: []string{"pre-hook-set"},
			Why: "The portal discards a hook's output and continues the login. Only syslog records a failure, under " +
				"the tag ood_nginx_stage.",
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
	fix := permissionFix(e, at, "chown root:root %s && chmod 0700 %s    # read the file first: root runs it")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return steps.Failed("the portal runs "+shownWord(at)+", which does not exist", "")
	case err != nil:
		return steps.Errored(err)
	case !info.Mode.IsRegular():
		return steps.Failed(shownWord(at)+" is not a regular file", "")
	case info.Mode.Perm()&0o100 == 0:
		return steps.Failed(fmt.Sprintf("%s has mode %04o and cannot be executed", shownWord(at), info.Mode.Perm()), fix)
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
		return steps.Skipped("%s does not exist", shownWord(at))
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
	ask(bootstrapName, "it does not run k8s-bootstrap-ondemand.sh, so users get no namespace")
	if strings.Contains(does.words, wrongHookEnv) {
		lacks = append(lacks, "it passes "+wrongHookEnv+", not hook.env")
	} else {
		ask("hook.env", "it does not pass "+hookEnv)
	}
	if withOIDC(e) {
		ask("set-k8s-creds.sh", "it does not run set-k8s-creds.sh, so users' tokens are not written to their kubeconfigs")
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
		lacks = append(
			lacks,
			"it sets no Pod Security level, so users' namespaces have the cluster's default level, which may be privileged",
		)
	case !strings.Contains(does.words, "pod-security.kubernetes.io/enforce="+level):
		lacks = append(lacks, "it sets a Pod Security level other than "+level)
	}
	if does.hides {
		lacks = append(lacks, "it continues after "+bootstrapName+" fails, and Open OnDemand does not log the failure")
	}
	if len(lacks) > 0 {
		return steps.Warned(shownWord(at)+": "+strings.Join(lacks, "; "), e.ApplyStep("hooks"))
	}
	return steps.Passed("%s sets the Pod Security level %s", at, level)
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
			lacks = append(lacks, "pun_pre_hook_exports does not contain "+name)
		}
	}
	inner, _ := values["oidc_settings"].(map[string]any)
	if v, ok := inner["OIDCPassRefreshToken"]; !ok || !switchedOn(v) {
		lacks = append(lacks, "oidc_settings has no OIDCPassRefreshToken: 'On', so the portal passes no refresh token")
	}
	scope, _ := values["oidc_scope"].(string)
	opened := scope == "" || slices.Contains(strings.Fields(scope), "openid")
	if !opened {
		lacks = append(
			lacks, "oidc_scope is "+shownWord(scope)+" and does not contain openid, so the provider issues no ID token",
		)
	}
	switch {
	case len(lacks) > 0 && (opened || len(lacks) > 1):
		return steps.Failed(strings.Join(lacks, "; "), "")
	case len(lacks) > 0:
		return steps.Failed(lacks[0], scopeFix(ctx, e, scope)).WithoutAction()
	}
	return steps.Passed("the portal passes %s and the refresh token", strings.Join(tokenExports, " and "))
}

// plainScope matches values of oidc_scope that need no quotes in sed and in YAML.
var plainScope = regexp.MustCompile(`^[A-Za-z0-9_. -]+$`)

// scopeFix returns the command that adds openid to oidc_scope in ood_portal.yml. carrick itself does not set this key.
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
			return steps.Skipped(
				"the directory that represents the web node does not contain Apache's configuration. Run on the web node: %s", run,
			)
		}
		return steps.Failed("neither "+strings.Join(apacheFiles, " nor ")+" exists", "")
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
			return steps.Failed(file+" does not contain "+shownWord(want), onWebNode(run))
		}
	}
	return steps.Passed("%s contains %s", file, at)
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
		return steps.Passed("the web node has no SELinux")
	case mode == permits:
		return steps.Passed("SELinux is not enforcing")
	}
	out, err := check.CommandOutput(ctx, e.Host, 30*time.Second, "getsebool", selinuxBoolean)
	switch {
	case err != nil && errors.As(err, new(*exec.ExitError)):
		return steps.Failed(
			"SELinux is enforcing and has no boolean "+selinuxBoolean+": the package ondemand-selinux is not installed",
			onWebNode("dnf install ondemand-selinux && setsebool -P "+selinuxBoolean+" on"),
		)
	case err != nil:
		return steps.Errored(err)
	case strings.HasSuffix(strings.TrimSpace(out), "on"):
		return steps.Passed("SELinux is enforcing, and %s is on", selinuxBoolean)
	}
	return steps.Failed("SELinux is enforcing, and "+selinuxBoolean+" is off", "")
}
