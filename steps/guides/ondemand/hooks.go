package ondemand

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"

	"carrick/cluster/masked"
	"carrick/steps"
	"carrick/steps/action"
)

func hooks() steps.Step {
	return steps.Step{
		Name: "hooks", Title: "Hooks",
		Map: steps.MapRow{Local: "hooks", Remote: "user namespaces", Arrow: steps.Remote},
		Why: "When a user's web server starts, root runs upstream's hooks, which create the user's namespace, its network " +
			"policy and its role bindings. hook.env configures the hooks, and the portal's settings name the hook to run.",
		Ask: []steps.Question{
			{
				Key: "hooks.allow-cidr", Title: "CIDR that can reach users' pods", Kind: steps.CIDR,
				Adopt: adoptEnv("NETWORK_POLICY_ALLOW_CIDR"),
				Help: "Sets NETWORK_POLICY_ALLOW_CIDR in hook.env. Enter one CIDR that contains the web node and the " +
					"cluster's nodes, such as 10.0.0.0/16. Traffic through a NodePort comes from a node's address.",
				Default: allowDefault,
			},
			{
				Key: "hooks.extra", Title: "Existing site hook to run first", Kind: steps.Path, NotFromPeer: true, Opt: true,
				Adopt: adoptAlso,
				Help: "The portal runs only one hook. Enter the absolute path of the site's existing hook, and carrick's hook " +
					"runs it first. Leave the answer empty if the existing hook sets up Kubernetes.",
				Default: alsoDefault,
			},
		},
		Facts: append([]steps.Fact{
			{Name: "hook-before", Title: "the site's existing hook", On: steps.Local, Learn: hookBefore},
			{
				Name: "user-node-ports", Title: "a NodePort of a user's app", On: steps.Remote, Shared: true,
				Learn: userNodePorts,
			},
		}, portalFacts()...),
		Actions: slices.Concat([]steps.Action{
			{
				Name: "hook-env", Title: "Configure hook.env", On: steps.Local,
				Doer: editedFile{
					File: action.File{Path: hookEnv, Mode: 0o600, Secret: true, Content: hookEnvText}, redact: redactEnv,
				},
			},
			{
				Name: "pre-hook", Title: "Write the hook that runs upstream's hooks", On: steps.Local,
				Doer: preHookFile{action.File{Path: preHook, Mode: 0o700, Content: preHookText}, portalDoer()},
			},
			{
				Name: "portal", Title: "Configure the portal to run the hook", On: steps.Local,
				Doer: portalDoer(),
			},
		}, portalCommands()),
		Checks: slices.Concat(hookEnvChecks(), hookChecks(), []steps.Check{hookKubeconfigCheck()}, proxyChecks()),
	}
}

// openHookEnv reads and parses hook.env. It returns an AbsentError if the file does not exist.
func openHookEnv(ctx context.Context, e steps.Env) (envFile, error) {
	text, err := e.Host.Read(ctx, hookEnv)
	if errors.Is(err, fs.ErrNotExist) {
		return envFile{}, steps.Absent("%s does not exist", hookEnv)
	}
	if err != nil {
		return envFile{}, err
	}
	return parseEnv(string(text)), nil
}

// hookEnvText returns the existing hook.env with carrick's keys set.
func hookEnvText(ctx context.Context, e steps.Env) (masked.Value, error) {
	f, err := openHookEnv(ctx, e)
	if err != nil && !steps.IsAbsent(err) {
		return masked.Value{}, err
	}
	if err := undisputed(ctx, e); err != nil {
		return masked.Value{}, err
	}
	want, err := envWanted(ctx, e, f)
	if err != nil {
		return masked.Value{}, err
	}
	names := envNames()
	slices.SortFunc(want, func(a, b envValue) int { return slices.Index(names, a.key) - slices.Index(names, b.key) })
	for _, kv := range want {
		if err := f.set(kv.key, kv.value); err != nil {
			return masked.Value{}, err
		}
	}
	f.fixWhitespace()
	return masked.New(f.String()), nil
}

type envValue struct{ key, value string }

// envWanted returns the settings that carrick writes to hook.env. have is the existing file.
func envWanted(ctx context.Context, e steps.Env, have envFile) ([]envValue, error) {
	out := []envValue{
		{"K8S_USERNAME_PREFIX", usernamePrefix(e)},
		{"NAMESPACE_PREFIX", namespacePrefix(e)},
		{"NETWORK_POLICY_ALLOW_CIDR", e.Answers.Text("hooks.allow-cidr")},
		{"USE_POD_SECURITY_POLICY", "false"},
		{"USE_JOB_POD_REAPER", fmt.Sprint(e.Answers.Bool("walltime.enabled"))},
	}
	if e.Answers.Bool("registry.enabled") {
		out = append(
			out, envValue{"IMAGE_PULL_SECRET", e.Answers.Text("registry.secret")},
			envValue{"REGISTRY_DOCKER_CONFIG_JSON", registryFile},
		)
	} else {
		out = append(out, envValue{"IMAGE_PULL_SECRET", ""}, envValue{"REGISTRY_DOCKER_CONFIG_JSON", ""})
	}
	if !withOIDC(e) {
		return out, nil
	}
	secret, err := clientSecret(ctx, e, have)
	if err != nil {
		return nil, err
	}
	return append(
		out, envValue{"IDP_ISSUER_URL", e.Answers.Text("oidc.issuer")},
		envValue{"CLIENT_ID", e.Answers.Text("oidc.client-id")}, envValue{"CLIENT_SECRET", secret.Reveal()},
	), nil
}

// clientSecret returns the OIDC client secret from the answers, or else from hook.env. If neither contains a secret,
// clientSecret returns the portal's secret, provided that the portal uses the same client ID.
func clientSecret(ctx context.Context, e steps.Env, have envFile) (masked.Value, error) {
	if s := e.Answers.Masked("oidc.client-secret"); !s.IsZero() {
		return s, nil
	}
	if s := have.secret("CLIENT_SECRET"); !s.IsZero() && s.Reveal() != envKeyOf("CLIENT_SECRET").ships {
		return s, nil
	}
	_, values, err := openPortal(ctx, e)
	if err != nil {
		return masked.Value{}, err
	}
	text, _ := values["oidc_client_secret"].(string)
	if text != "" && !strings.HasPrefix(text, "/") && values["oidc_client_id"] == e.Answers.Text("oidc.client-id") {
		return masked.New(text), nil
	}
	return masked.Value{}, steps.Absent(
		"the OIDC client secret is unknown: pass --secret oidc.client-secret=@FILE, or set CLIENT_SECRET in %s",
		hookEnv,
	)
}

// fixWhitespace removes whitespace that makes upstream's hook fail silently: CRs at the end of lines, and spaces before
// comments.
func (f *envFile) fixWhitespace() {
	for i, l := range f.lines {
		text := strings.TrimSuffix(l.text, "\r")
		if trimmed := strings.TrimLeft(text, " \t"); strings.HasPrefix(trimmed, "#") {
			text = trimmed
		}
		f.lines[i].text = text
	}
}

func preHookText(_ context.Context, e steps.Env) (masked.Value, error) {
	text, err := hookScript{
		kubeconfig: rootKubeconfig, kubectl: e.Answers.Text("kubectl.path"), level: e.Answers.Text("policies.level"),
		creds: withOIDC(e), also: e.Answers.Text("hooks.extra"),
	}.text()
	return masked.New(text), err
}

// hookBefore returns the site's existing hook, which must run before upstream's hooks. If the portal runs carrick's
// hook, hookBefore returns the hook that carrick's hook runs first. It does not return a hook that already runs
// upstream's hooks.
func hookBefore(ctx context.Context, e steps.Env) (any, error) {
	at, err := hookInUse(ctx, e)
	if err != nil {
		return nil, err
	}
	script, err := e.Host.Read(ctx, at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, steps.Absent("the portal runs no hook")
	case err != nil:
		return nil, err
	case at == preHook:
		if also := alsoOf(string(script)); also != "" {
			return also, nil
		}
		return nil, steps.Absent("carrick's hook runs no other hook")
	}
	does, err := readHook(string(script))
	switch {
	case err != nil && strings.Contains(string(script), bootstrapName), strings.Contains(does.words, bootstrapName):
		return nil, steps.Absent("%s runs upstream's hooks, as carrick's hook does", at)
	case err != nil && !errors.Is(err, errNoShell):
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	return at, nil
}

func alsoDefault(e steps.Env) (any, string) {
	if at, err := e.Own.Text("hook-before"); err == nil {
		return at, "the site's existing hook"
	}
	return "", "the portal, which runs no other hook"
}

func adoptAlso(ctx context.Context, e steps.Env) (any, string, error) {
	at, err := hookBefore(ctx, e)
	if err != nil {
		return nil, "", err
	}
	return at, "the portal's current hook", nil
}

// allowDefault proposes the smallest CIDR that contains the web node and the cluster's nodes. It proposes nothing if
// this CIDR is too large.
func allowDefault(e steps.Env) (any, string) {
	nodes, err := e.Peer.List("node-addresses")
	if err != nil {
		return nil, ""
	}
	from := "the smallest CIDR that contains the web node and the cluster's nodes"
	web, err := e.Own.List("web-node-addresses")
	if err != nil {
		from = "the smallest CIDR that contains the cluster's nodes; the web node's address is unknown here"
	}
	p, ok := covering(slices.Concat(nodes, web))
	if !ok {
		return nil, ""
	}
	return p.String(), from
}

// widest is the minimum prefix length of a proposed CIDR.
const widest = 8

// covering returns the smallest CIDR that contains all addresses with the IP family of the first address. It returns
// false if an address is invalid or the prefix is shorter than widest.
func covering(addresses []string) (netip.Prefix, bool) {
	var p netip.Prefix
	for _, text := range addresses {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return p, false
		}
		a = a.Unmap()
		if !p.IsValid() {
			p = netip.PrefixFrom(a, a.BitLen())
		}
		if a.Is4() != p.Addr().Is4() {
			continue // a CIDR covers only one address family
		}
		for !p.Contains(a) {
			p, _ = p.Addr().Prefix(p.Bits() - 1)
		}
	}
	return p, p.IsValid() && p.Bits() >= widest
}
