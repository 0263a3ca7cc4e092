package scenario

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"time"

	"carrick/cluster/sandbox/standin/webnode"
)

// Paths in a correct set-up, and paths from the published page.
const (
	siteKubeconfig = "/etc/ood/hooks/kubeconfig"
	siteToken      = "/etc/ood/hooks/token"
	siteCA         = "/etc/ood/hooks/cluster-ca.crt"
	siteHook       = "/etc/ood/hooks/k8s-pre-hook.sh"
	siteRenewal    = "/etc/cron.d/ondemand-token"
	siteCluster    = "/etc/ood/config/clusters.d/kubernetes.yml"
	wrongEnv       = "/etc/ood/config/hooks.env"
	pageKubeconfig = "/root/.kube/config"
	pageCA         = "/etc/pki/tls/certs/kubernetes-ca.crt"
	pageHook       = "/opt/ood/hooks/k8s-pre-hook.sh"
	pageRenewal    = "/usr/local/sbin/renew-ondemand-token"
	shippedEnv     = `# As the package ships it.
K8S_USERNAME_PREFIX=""
NAMESPACE_PREFIX=""
NETWORK_POLICY_ALLOW_CIDR="127.0.0.1/32"
IDP_ISSUER_URL="https://idp.example.com/auth/realms/main/protocol/openid-connect/token"
CLIENT_ID="changeme"
CLIENT_SECRET="changeme"
IMAGE_PULL_SECRET=""
REGISTRY_DOCKER_CONFIG_JSON="/some/path/to/docker/config.json"
USE_POD_SECURITY_POLICY=false
USE_JOB_POD_REAPER=false
`
)

// byHand creates the files of a correct set-up, unless they exist.
func (p *portal) byHand(ctx context.Context) error {
	if p.node.Has(siteKubeconfig) {
		return nil
	}
	token, err := p.mint(ctx, 24*time.Hour)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		path, text string
		secret     bool
	}{
		{siteCA, p.ca(), false},
		{siteToken, token, true},
		{siteCluster, p.clusterFile(siteCA, "oidc", ""), false},
		{
			siteRenewal,
			"17 * * * * root KUBECONFIG=" + siteKubeconfig +
				" /usr/local/bin/kubectl create token ondemand -n ondemand --duration 24h > " +
				siteToken + ".new && chmod 600 " + siteToken + ".new && mv " + siteToken + ".new " + siteToken + "\n", false,
		},
	} {
		mode := fs.FileMode(0o644)
		if f.secret {
			mode = 0o600
		}
		if err := p.node.Write(f.path, f.text, mode); err != nil {
			return err
		}
	}
	env, err := p.node.Read(webnode.HookEnv)
	if err != nil {
		return err
	}
	if err := p.node.Write(webnode.HookEnv, env, 0o600); err != nil {
		return err
	}
	if err := p.node.Set(webnode.HookEnv, p.values()); err != nil {
		return err
	}
	if err := p.node.Write(siteHook, siteScript, 0o700); err != nil {
		return err
	}
	if err := p.node.Write(siteKubeconfig, p.kubeconfig(siteCA, "", siteToken), 0o600); err != nil {
		return err
	}
	return p.hooked(siteHook)
}

// siteScript is a wrapper script for the package's hooks.
const siteScript = `#!/bin/bash
while [ $# -gt 0 ]; do case "$1" in --user) ONDEMAND_USERNAME="$2"; shift 2;; *) shift;; esac; done
[ -n "${ONDEMAND_USERNAME:-}" ] || { echo "no user" >&2; exit 1; }
HOOKENV=/etc/ood/config/hook.env
export KUBECONFIG=` + siteKubeconfig + `
/bin/bash /opt/ood/hooks/k8s-bootstrap/k8s-bootstrap-ondemand.sh "$ONDEMAND_USERNAME" "$HOOKENV" || exit 1
. "$HOOKENV"
/usr/local/bin/kubectl label --overwrite namespace "${NAMESPACE_PREFIX}${ONDEMAND_USERNAME}" pod-security.kubernetes.io/enforce=restricted || exit 1
unset KUBECONFIG
/bin/bash /opt/ood/hooks/k8s-bootstrap/set-k8s-creds.sh "$ONDEMAND_USERNAME" "$HOOKENV"
`

// hooked configures path as the portal's pre-hook.
func (p *portal) hooked(path string) error {
	block := "\n# Kubernetes.\npun_pre_hook_root_cmd: \"" + path +
		"\"\npun_pre_hook_exports: \"OIDC_ACCESS_TOKEN,OIDC_REFRESH_TOKEN\"\noidc_settings:\n  OIDCPassRefreshToken: \"On\"\n"
	return p.node.Edit(webnode.Portal, func(text string) string { return text + block })
}

// page creates the files of a user who has followed the published page literally. These are hooks.env, a cluster file
// with the mistakes in the page's example, a literal token in root's kubeconfig, and a renewal job without the required
// permission.
func (p *portal) page(ctx context.Context) error {
	if p.node.Has(pageKubeconfig) {
		return nil
	}
	token, err := p.mint(ctx, 9*time.Hour)
	if err != nil {
		return err
	}
	if err := p.node.Write(wrongEnv, shippedEnv, 0o644); err != nil {
		return err
	}
	values := p.values()
	values["IDP_ISSUER_URL"] += "/protocol/openid-connect/token"
	if err := p.node.Set(wrongEnv, values); err != nil {
		return err
	}
	for _, f := range []struct {
		path, text string
		mode       fs.FileMode
	}{
		{pageCA, p.ca(), 0o644},
		{pageHook, "#!/bin/bash\n# As on the published page.\nONDEMAND_USERNAME=$2\nHOOKENV=/etc/ood/config/hook.env\n" +
			"/bin/bash /opt/ood/hooks/k8s-bootstrap/k8s-bootstrap-ondemand.sh \"$ONDEMAND_USERNAME\" \"$HOOKENV\"\n" +
			"/bin/bash /opt/ood/hooks/k8s-bootstrap/set-k8s-creds.sh \"$ONDEMAND_USERNAME\" \"$HOOKENV\"\n", 0o755},
		{
			pageRenewal,
			"#!/bin/bash\nset -e\nTOKEN=$(kubectl create token ondemand --namespace=ondemand --duration 9h)\nkubectl config " +
				"set-credentials ondemand@kubernetes --token=\"$TOKEN\"\n",
			0o755,
		},
		{"/etc/cron.d/renew-ondemand-token", "0 */8 * * * root " + pageRenewal + "\n", 0o644},
		{siteCluster, p.clusterFile(pageCA, "odic", "    config_file: \"~/.kube/config\"\n"), 0o644},
		{pageKubeconfig, p.kubeconfig(pageCA, token, ""), 0o600},
	} {
		if err := p.node.Write(f.path, f.text, f.mode); err != nil {
			return err
		}
	}
	return p.hooked(pageHook)
}

// kubeconfig returns root's kubeconfig on the web node. If tokenFile is set, the kubeconfig refers to that file
// instead of containing the token.
func (p *portal) kubeconfig(ca, token, tokenFile string) string {
	user := map[string]any{"token": token}
	if tokenFile != "" {
		user = map[string]any{"tokenFile": tokenFile}
	}
	return config(map[string]any{"server": p.side.Config.Host, "certificate-authority": ca}, user)
}

// admin returns a kubeconfig with the cluster admin's credentials.
func (p *portal) admin() string {
	encode := base64.StdEncoding.EncodeToString
	return config(
		map[string]any{"server": p.side.Config.Host, "certificate-authority-data": encode(p.side.Config.CAData)},
		map[string]any{
			"client-certificate-data": encode(p.side.Config.CertData), "client-key-data": encode(p.side.Config.KeyData),
		},
	)
}

func config(cluster, user map[string]any) string {
	data, _ := json.MarshalIndent(map[string]any{ // JSON is valid YAML
		"apiVersion": "v1", "kind": "Config", "current-context": "ondemand@kubernetes",
		"clusters": []any{map[string]any{"name": "kubernetes", "cluster": cluster}},
		"users":    []any{map[string]any{"name": "ondemand@kubernetes", "user": user}},
		"contexts": []any{
			map[string]any{
				"name": "ondemand@kubernetes", "context": map[string]any{"cluster": "kubernetes", "user": "ondemand@kubernetes"},
			},
		},
	}, "", "  ")
	return string(data) + "\n"
}

// clusterFile returns the dashboard's configuration file for the cluster.
func (p *portal) clusterFile(ca, auth, more string) string {
	return fmt.Sprintf(`---
v2:
  metadata:
    title: "Kubernetes"
  job:
    adapter: "kubernetes"
%s    cluster: "ondemand-k8s"
    context: "ondemand-k8s"
    bin: "/usr/local/bin/kubectl"
    username_prefix: ""
    namespace_prefix: "user-"
    all_namespaces: false
    auto_supplemental_groups: false
    server:
      endpoint: %q
      cert_authority_file: %q
    auth:
      type: %q
    mounts: []
  batch_connect:
    ssh_allow: false
`, more, p.side.Config.Host, ca, auth)
}

// expired returns an expired token with an invalid signature, because the API server never issues a token that has
// already expired. The API server returns the same error for both defects.
func expired() string {
	encode := base64.RawURLEncoding.EncodeToString
	ended := time.Now().Add(-24 * time.Hour).Unix()
	body, _ := json.Marshal(map[string]any{
		"iss": "https://kubernetes.default.svc.cluster.local", "sub": "system:serviceaccount:ondemand:ondemand",
		"aud": []string{"https://kubernetes.default.svc.cluster.local"}, "iat": ended - 32400, "exp": ended,
	})
	return encode([]byte(`{"alg":"RS256","kid":"stand-in"}`)) + "." + encode(body) + "." + encode([]byte("stand-in"))
}
