package scenario

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"carrick/cluster/sandbox/standin/oidc"
	"carrick/cluster/sandbox/standin/webnode"
)

// Faults in the services that the web node uses.
const (
	noAudience       = "no-audience"
	usernamePrefixed = "username-prefixed"
	prometheusEmpty  = "prometheus-empty"
	registryRefuses  = "registry-refuses"
)

// namespaceUnbound is a fault in the cluster's objects. It also sets USE_JOB_POD_REAPER, so that the web node's hook
// creates a RoleBinding for the reaper.
const namespaceUnbound = "namespace-unbound"

// byHand is a correct manual set-up. The faults in files require it.
const byHand = "by-hand"

// change is a fault in one file on the web node.
type change struct {
	title string
	do    func(*portal) error
}

// changes contains the faults in files on the web node, by name. All of them require byHand.
var changes = map[string]change{
	"token-expired": {
		"Root's token on the web node has expired, so root can no longer renew it.", func(p *portal) error {
			return p.node.Write(siteToken, expired(), 0o600)
		},
	},
	"admin-kubeconfig": {"Root's kubeconfig on the web node contains the cluster admin's credentials.", func(p *portal) error {
		return p.node.Write(siteKubeconfig, p.admin(), 0o600)
	}},
	"ca-missing": {
		"The file with the cluster's CA was deleted from the web node.",
		func(p *portal) error { return p.node.Remove(siteCA) },
	},
	"hooks-env": {
		"The hook's settings are in hooks.env, as in the published guide, but nothing reads that file.",
		func(p *portal) error {
			text, err := p.node.Read(webnode.HookEnv)
			if err != nil || p.node.Has(wrongEnv) {
				return err
			}
			if err := p.node.Write(wrongEnv, text, 0o644); err != nil {
				return err
			}
			return p.node.Write(webnode.HookEnv, shippedEnv, 0o644)
		},
	},
	"hook-env-readable": {
		"All users of the web node can read hook.env, which contains a client secret.", func(p *portal) error {
			text, err := p.node.Read(webnode.HookEnv)
			if err != nil {
				return err
			}
			return p.node.Write(webnode.HookEnv, text, 0o644)
		},
	},
	"hook-env-comment": {"A comment in hook.env is indented, so the hook exits.", func(p *portal) error {
		return p.node.Edit(webnode.HookEnv, once("  # for the new cluster\n"))
	}},
	"hook-env-crlf": {"hook.env was saved on Windows: its lines end in carriage returns.", func(p *portal) error {
		return p.node.Edit(webnode.HookEnv, func(text string) string {
			return strings.ReplaceAll(strings.ReplaceAll(text, "\r", ""), "\n", "\r\n")
		})
	}},
	"pod-security-policies": {
		"USE_POD_SECURITY_POLICY is true in hook.env: the hook exits before it creates anything.",
		setting("USE_POD_SECURITY_POLICY", "true"),
	},
	"network-shut": {
		"NETWORK_POLICY_ALLOW_CIDR is still the package default: users' apps cannot be reached from outside.",
		setting("NETWORK_POLICY_ALLOW_CIDR", "127.0.0.1/32"),
	},
	"prefix-differs": {
		"hook.env and the cluster file have different prefixes for users' namespaces.", setting("NAMESPACE_PREFIX", "ood-"),
	},
	"token-endpoint": {
		"IDP_ISSUER_URL in hook.env is the token endpoint, as in the package's example, and not the issuer.",
		func(p *portal) error {
			return p.node.Set(
				webnode.HookEnv, map[string]string{"IDP_ISSUER_URL": p.provider.Issuer + "/protocol/openid-connect/token"},
			)
		},
	},
	"hook-not-executable": {"The pre-hook is not executable.", func(p *portal) error {
		text, err := p.node.Read(siteHook)
		if err != nil {
			return err
		}
		return p.node.Write(siteHook, text, 0o600)
	}},
	"no-pre-hook": {"The portal's settings file sets no pre-hook: users get no namespace.", func(p *portal) error {
		return p.node.Edit(webnode.Portal, func(text string) string {
			return strings.ReplaceAll(text, "\npun_pre_hook_root_cmd:", "\n# pun_pre_hook_root_cmd:")
		})
	}},
	"auth-typo": {
		"auth.type in the cluster file is odic, as in the published guide: the adapter does nothing.",
		replacing(siteCluster, `type: "oidc"`, `type: "odic"`),
	},
	"tilde": {
		"config_file in the cluster file begins with ~, which kubectl does not expand.",
		replacing(siteCluster, `    adapter: "kubernetes"
`, `    adapter: "kubernetes"
    config_file: "~/.kube/config"
`),
	},
	"no-endpoint": {
		"The cluster file sets no server: users' kubectl connects to https://localhost:8080.", func(p *portal) error {
			return p.node.Edit(siteCluster, func(text string) string {
				before, rest, found := strings.Cut(text, "    server:\n")
				_, after, ends := strings.Cut(rest, "    auth:\n")
				if !found || !ends {
					return text
				}
				return before + "    auth:\n" + after
			})
		},
	},
	"kubectl-missing": {
		"The key bin in the cluster file does not point to kubectl.", replacing(siteCluster, "/usr/local/bin/kubectl", "/usr/bin/kubectl"),
	},
}

func setting(key, value string) func(*portal) error {
	return func(p *portal) error { return p.node.Set(webnode.HookEnv, map[string]string{key: value}) }
}

func replacing(file, old, with string) func(*portal) error {
	return func(p *portal) error {
		return p.node.Edit(file, func(text string) string {
			if strings.Contains(text, with) {
				return text
			}
			return strings.Replace(text, old, with, 1)
		})
	}
}

// once returns a function that prepends first to a string unless it is already there.
func once(first string) func(string) string {
	return func(text string) string { return first + strings.TrimPrefix(text, first) }
}

// ondemandActs returns descriptions of the faults in portal.acts, by fault.
func ondemandActs() map[string]string {
	all := map[string]string{
		noAudience: "The portal's client has no audience mapper: the audience of users' tokens does not include the " +
			"API server.",
		usernamePrefixed: "The API server prefixes usernames with the issuer: the hook's RoleBindings match no user.",
		prometheusEmpty:  "Prometheus has no pod metrics: the namespace reaper considers every namespace unused.",
		"issuer-down":    "The identity provider does not respond.",
		registryRefuses:  "The registry no longer accepts the login of the robot account.",
	}
	for name, c := range changes {
		all[name] = c.title
	}
	return all
}

// ondemandUnder maps faults to the faults that they require. It contains only faults that require another fault.
func ondemandUnder() map[string]string {
	under := map[string]string{
		"role-narrowed": byHand, "renewal-forbidden": byHand, namespaceUnbound: byHand, "issuer-down": byHand,
	}
	for name := range changes {
		under[name] = byHand
	}
	return under
}

// acts returns functions for the faults that YAML cannot express.
func (p *portal) acts() map[string]func(context.Context) error {
	acts := map[string]func(context.Context) error{
		byHand: p.byHand, "page": p.page,
		noAudience:       func(context.Context) error { p.spoilt = true; p.provider.DropAudience(); return nil },
		prometheusEmpty:  func(context.Context) error { p.empty.Store(true); return nil },
		namespaceUnbound: func(context.Context) error { return setting("USE_JOB_POD_REAPER", "true")(p) },
		registryRefuses:  func(context.Context) error { p.registry.Refuse(); return nil },
		usernamePrefixed: func(context.Context) error { p.spoilt, p.prefixed = true, true; return p.trust() },
		"issuer-down": func(ctx context.Context) error { // the API server has already fetched the signing keys
			if err := p.known(ctx); err != nil {
				return err
			}
			p.spoilt = true
			p.provider.Close()
			return nil
		},
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		do := changes[name].do
		acts[name] = func(context.Context) error { return do(p) }
	}
	return acts
}

// mint requests a token for the ServiceAccount ondemand. The token is valid for life.
func (p *portal) mint(ctx context.Context, life time.Duration) (string, error) {
	client, err := kubernetes.NewForConfig(p.side.Config)
	if err != nil {
		return "", err
	}
	seconds := int64(life.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	made, err := client.CoreV1().ServiceAccounts("ondemand").CreateToken(ctx, "ondemand", request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create a token for root on the web node: %w", err)
	}
	return made.Status.Token, nil
}

// values returns the variables in hook.env of a correct set-up.
func (p *portal) values() map[string]string {
	return map[string]string{
		"NAMESPACE_PREFIX": "user-", "NETWORK_POLICY_ALLOW_CIDR": "172.30.0.0/16",
		"IDP_ISSUER_URL": p.provider.Issuer, "CLIENT_ID": oidc.Client, "CLIENT_SECRET": oidc.ClientSecret,
	}
}

func (p *portal) ca() string { return string(p.side.Config.CAData) }
