package kubeconfig

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"carrick/cluster/clustertest/hostile"
)

// If Parse accepts a kubeconfig from another user, client-go reads the same content. The kubeconfig runs no command,
// reads no file and verifies the server's certificate.
func FuzzForeignKubeconfig(f *testing.F) {
	ca, key := certAndKey(f)
	encode := base64.StdEncoding.EncodeToString
	f.Add([]byte(strings.Replace(goodKubeconfig, "CA", encode(ca), 1)))
	const one = "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: " +
		"a}}], clusters: [{name: a, cluster: {server: 'https://a'%s}}], users: [{name: a, user: {%s}}]}"
	for _, extra := range [][2]string{
		{"", "token: a"},
		{", insecure-skip-tls-verify: true", "token: a"},
		{", proxy-url: 'http://proxy:3128'", "token: a"},
		{", certificate-authority: /etc/passwd", "tokenFile: /etc/passwd"},
		{", tls-server-name: b", "exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [/tmp/x]}"},
		{"", "auth-provider: {name: oidc, config: {client-id: a}}"},
		{"", "as: root, as-groups: ['system:masters'], token: a"},
		{"", "client-certificate-data: " + encode(ca) + ", client-key-data: " + encode(key)},
		{"", "token: 1"},
		{"", "Token: a, token: b"},
		{", Server: 'https://b'", "token: ~, token: a"},
	} {
		f.Add([]byte(strings.Replace(strings.Replace(one, "%s", extra[0], 1), "%s", extra[1], 1)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := Parse(data)
		if err != nil {
			if bad := hostile.Unfit(err.Error()); bad != "" {
				t.Errorf("the error: %s", bad)
			}
			return
		}
		theirs, err := clientcmd.Load(data)
		if err != nil {
			return // client-go is stricter here: it would refuse what we take, which is harmless
		}
		context := theirs.Contexts[theirs.CurrentContext]
		if context == nil {
			t.Fatalf("client-go sees no context %q", theirs.CurrentContext)
		}
		at, as := theirs.Clusters[context.Cluster], theirs.AuthInfos[context.AuthInfo]
		switch {
		case at == nil || as == nil:
			t.Fatal("client-go finds no cluster or no user")
		case as.Exec != nil, as.AuthProvider != nil, as.TokenFile != "", as.ClientCertificate != "", as.ClientKey != "", as.Impersonate != "", len(as.ImpersonateGroups) > 0, as.Username != "", as.Password != "":
			t.Errorf("the user: %#v", as)
		case at.InsecureSkipTLSVerify, at.CertificateAuthority != "":
			t.Errorf("the cluster: %#v", at)
		case at.Server != k.Server, at.ProxyURL != k.ProxyURL, at.TLSServerName != k.TLSServerName, !bytes.Equal(
			at.CertificateAuthorityData, k.CA,
		):
			t.Errorf("client-go reads another cluster: %#v and %#v", at, k)
		case as.Token != k.Token.Reveal(), !bytes.Equal(
			as.ClientCertificateData, k.ClientCert,
		), string(as.ClientKeyData) != k.ClientKey.Reveal(), context.Namespace != k.Namespace:
			t.Error("client-go reads another user")
		}
		if cfg := RESTConfig(k); cfg.ExecProvider != nil || cfg.AuthProvider != nil || cfg.Insecure ||
			cfg.BearerTokenFile != "" || cfg.CAFile != "" || cfg.CertFile != "" || cfg.KeyFile != "" || cfg.Proxy != nil {
			t.Errorf("it is used with %v", cfg)
		}
	})
}
