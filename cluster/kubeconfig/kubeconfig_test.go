package kubeconfig

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"

	"carrick/cluster/masked"
)

// certAndKey returns a self-signed certificate and its key, both in PEM.
func certAndKey(t testing.TB) (cert, key []byte) {
	t.Helper()
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &signer.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// goodKubeconfig is a valid kubeconfig. CA is a placeholder for a base64-encoded CA.
const goodKubeconfig = `apiVersion: v1
kind: Config
preferences: {}
clusters:
- name: rome
  cluster:
    server: https://rome.example.org:6443
    certificate-authority-data: CA
contexts:
- name: carrick@rome
  context:
    cluster: rome
    user: carrick
    namespace: renku
users:
- name: carrick
  user:
    token: secret-token
current-context: carrick@rome
`

func TestParseKubeconfig(t *testing.T) {
	ca, key := certAndKey(t)
	otherCert, _ := certAndKey(t)
	encode := base64.StdEncoding.EncodeToString
	double := func(data []byte) string { return encode([]byte(encode(data))) }
	good := strings.Replace(goodKubeconfig, "CA", encode(ca), 1)
	token := "    token: secret-token\n"
	server := "    server: https://rome.example.org:6443\n"
	current := "current-context: carrick@rome\n"
	otherUser := func(lines string) string { return "users:\n- name: other\n  user:\n" + lines }
	pair := func(cert, key []byte) string {
		return "    client-certificate-data: " + encode(cert) + "\n    client-key-data: " + encode(key) + "\n"
	}

	for _, tc := range []struct {
		situation string
		from, to  string // replaced in the good one
		rules     []string
		words     string
	}{
		{situation: "a good one"},
		{situation: "no CA: the system's roots", from: "    certificate-authority-data: " + encode(ca) + "\n"},
		{situation: "no namespace", from: "    namespace: renku\n"},
		{situation: "no apiVersion and kind", from: "apiVersion: v1\nkind: Config\n"},
		{situation: "a client certificate", from: token, to: pair(ca, key)},
		{
			situation: "extensions are passed over", from: token,
			to: token + "    extensions: [{name: x, extension: {a: [1]}}]\n",
		},
		{situation: "what is null is absent", from: token, to: token + "    tokenFile: null\n    exec: ~\n"},
		{situation: "a proxy", from: server, to: server + "    proxy-url: socks5://proxy.example.org:1080\n"},

		{situation: "no current context", from: current, rules: []string{RuleNoCurrentContext}},
		{
			situation: "an empty current context", from: current, to: "current-context: ''\n",
			rules: []string{RuleNoCurrentContext},
		},
		{
			situation: "a current context that is not there", from: current, to: "current-context: milan\n",
			rules: []string{RuleUnknownContext}, words: `line 19: current-context is "milan", which does not exist`,
		},
		{situation: "a context without a cluster", from: "    cluster: rome\n", rules: []string{RuleNoCluster}},
		{
			situation: "a cluster that is not there", from: "    cluster: rome\n", to: "    cluster: milan\n",
			rules: []string{RuleNoCluster},
		},
		{
			situation: "a user that is not there", from: "    user: carrick\n", to: "    user: jane\n",
			rules: []string{RuleNoUser},
		},
		{situation: "no credentials", from: token, to: "    {}\n", rules: []string{RuleNoCredentials}},
		{situation: "an empty token", from: "secret-token", to: "''", rules: []string{RuleNoCredentials}},
		{situation: "a token with a line's end", from: "secret-token", to: `"secret-token\n"`, rules: []string{RuleBadToken}},
		{
			situation: "a token in base64 twice", from: "secret-token", to: encode([]byte(jwt(forever))),
			rules: []string{RuleDoubleBase64},
		},
		{
			situation: "a token that is a number", from: "secret-token", to: "12345", rules: []string{RuleWrongType},
			words: "in quotes",
		},
		{
			situation: "a certificate without its key", from: token, to: "    client-certificate-data: " + encode(ca) + "\n",
			rules: []string{RuleBadClientCert},
		},
		{
			situation: "a key without its certificate", from: token, to: "    client-key-data: " + encode(key) + "\n",
			rules: []string{RuleBadClientCert},
		},
		{
			situation: "a key of another certificate", from: token, to: pair(otherCert, key), rules: []string{RuleBadClientCert},
			words: "does not match",
		},

		{
			situation: "a command", from: token,
			to: "    exec: {command: /bin/evil, apiVersion: client.authentication.k8s.io/v1}\n", rules: []string{RuleExec},
		},
		{
			situation: "a command of another user", from: "users:\n", to: otherUser("    exec: {command: /bin/evil}\n"),
			rules: []string{RuleExec}, words: `user "other" runs a command`,
		},
		{
			situation: "an auth provider", from: token, to: "    auth-provider: {name: oidc}\n",
			rules: []string{RuleAuthProvider},
		},
		{
			situation: "a password", from: token, to: "    username: a\n    password: secret-password\n",
			rules: []string{RuleBasicAuth, RuleBasicAuth},
		},
		{
			situation: "a token from a file", from: token, to: "    tokenFile: /etc/passwd\n",
			rules: []string{RuleFileReference},
		},
		{
			situation: "a client certificate from files", from: token, to: "    client-certificate: /a\n    client-key: /b\n",
			rules: []string{RuleFileReference, RuleFileReference},
		},
		{
			situation: "a CA from a file", from: server, to: server + "    certificate-authority: /etc/ca.crt\n",
			rules: []string{RuleFileReference},
		},
		{
			situation: "impersonation", from: token, to: token + "    as: root\n    as-groups: [system:masters]\n",
			rules: []string{RuleImpersonation, RuleImpersonation},
		},
		{
			situation: "insecure", from: server, to: server + "    insecure-skip-tls-verify: true\n",
			rules: []string{RuleInsecure},
		},
		{situation: "explicitly not insecure", from: server, to: server + "    insecure-skip-tls-verify: false\n"},

		{situation: "no server", from: server, rules: []string{RuleNoServer}},
		{situation: "plain http", from: "https://", to: "http://", rules: []string{RuleNotHTTPS}},
		{
			situation: "no scheme", from: "https://rome.example.org:6443", to: "rome.example.org:6443",
			rules: []string{RuleNotHTTPS},
		},
		{
			situation: "not a URL", from: "https://rome.example.org:6443", to: "'https://rome:port'",
			rules: []string{RuleBadServer},
		},
		{
			situation: "a password in the server", from: "https://rome", to: "https://a:secret-b@rome",
			rules: []string{RuleBadServer},
		},
		{situation: "no host", from: "https://rome.example.org:6443", to: "https:///api", rules: []string{RuleBadServer}},
		{
			situation: "a proxy that is no proxy", from: server, to: server + "    proxy-url: file:///etc\n",
			rules: []string{RuleBadProxy},
		},
		{
			situation: "a password in the proxy", from: server, to: server + "    proxy-url: http://a:secret-b@proxy:1\n",
			rules: []string{RuleBadProxy},
		},
		{situation: "a CA that is not base64", from: encode(ca), to: "'%%%'", rules: []string{RuleBadCA}},
		{situation: "a CA that is no certificate", from: encode(ca), to: encode([]byte("hello")), rules: []string{RuleBadCA}},
		{situation: "a CA in base64 twice", from: encode(ca), to: double(ca), rules: []string{RuleDoubleBase64}},

		{
			situation: "an unknown key", from: token, to: token + "    tokenfile: x\n", rules: []string{RuleUnknownKey},
			words: `"tokenfile"`,
		},
		{
			situation: "an unknown key at the top", from: "kind: Config", to: "kind: Config\nmetadata: {}",
			rules: []string{RuleUnknownKey},
		},
		{
			situation: "the token twice", from: token, to: token + token, rules: []string{RuleDuplicateKey},
			words: "line 19: user \"carrick\" has the key token twice",
		},
		{
			situation: "two users of one name", from: "users:\n", to: "users:\n- name: carrick\n  user: {token: x}\n",
			rules: []string{RuleDuplicateName},
		},
		{
			situation: "a user without a name", from: "users:\n", to: "users:\n- user: {token: x}\n",
			rules: []string{RuleNoName},
		},
		{
			situation: "users that are no list", from: "users:\n- name: carrick\n  user:\n" + token, to: "users: {a: b}\n",
			rules: []string{RuleNoUser, RuleWrongType},
		},
		{situation: "another kind", from: "kind: Config", to: "kind: Secret", rules: []string{RuleWrongKind}},
		{situation: "two documents", from: current, to: current + "---\na: b\n", rules: []string{RuleSeveralDocuments}},
		{
			situation: "an alias", from: "namespace: renku", to: "namespace: &a renku\nextensions: [*a]",
			rules: []string{RuleAlias},
		},
		{situation: "an alias to nothing", from: "renku", to: "*nothing", rules: []string{RuleAlias}},
		{
			situation: "a merge key", from: token, to: "    <<: {token: x}\n",
			rules: []string{RuleUnknownKey, RuleNoCredentials},
		},
		{
			situation: "escape sequences", from: current, to: "current-context: \"\\e[2Jmilan\"\n",
			rules: []string{RuleUnknownContext}, words: "milan",
		},
		{
			situation: "all at once", from: server,
			to:    "    server: http://rome\n    insecure-skip-tls-verify: true\n    certificate-authority: /x\n",
			rules: []string{RuleNotHTTPS, RuleInsecure, RuleFileReference},
		},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			text := good
			if tc.from != "" {
				if !strings.Contains(good, tc.from) {
					t.Fatalf("the good one does not contain %q", tc.from)
				}
				text = strings.Replace(good, tc.from, tc.to, 1)
			}
			expectRules(t, []byte(text), tc.rules, tc.words)
		})
	}
}

func TestParseKubeconfigOfNoKubeconfig(t *testing.T) {
	bomb := "a: &a [x, x]\n"
	for c := 'b'; c < 'z'; c++ {
		bomb += string(c) + ": &" + string(c) + " [*" + string(c-1) + ", *" + string(c-1) + "]\n"
	}
	for _, tc := range []struct{ situation, text, rule string }{
		{"nothing", "", RuleNotYAML},
		{"a comment", "# hello", RuleNotYAML},
		{"text", "hello", RuleNotYAML},
		{"a list", "[]", RuleNotYAML},
		{"no YAML", "a: b: c", RuleNotYAML},
		{"a bomb", bomb, RuleAlias},
		{"too large", strings.Repeat("#", limit+1), RuleTooLarge},
		{"an empty mapping", "{}", RuleNoCurrentContext},
		{"bytes that are no text", "\xff\xfe\x00", RuleNotYAML},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			start := time.Now()
			expectRules(t, []byte(tc.text), []string{tc.rule}, "")
			if time.Since(start) > 30*time.Second {
				t.Error("took too long")
			}
		})
	}
}

func expectRules(t *testing.T, data []byte, rules []string, words string) {
	t.Helper()
	k, err := Parse(data)
	if len(rules) == 0 {
		if err != nil || k.Server == "" {
			t.Fatalf("got %v, %v", k, err)
		}
		return
	}
	var bad Error
	if !errors.As(err, &bad) {
		t.Fatalf("error %v", err)
	}
	var got []string
	for _, p := range bad.Problems {
		got = append(got, p.Rule)
		if strings.Contains(p.Detail, "secret-") || strings.ContainsAny(p.Detail, "\x1b\n") {
			t.Errorf("detail %q", p.Detail)
		}
	}
	if diff := cmp.Diff(rules, got); diff != "" {
		t.Errorf("%s\n%v", diff, err)
	}
	if !strings.Contains(err.Error(), words) {
		t.Errorf("%q does not say %q", err, words)
	}
}

func TestKubeconfigBytes(t *testing.T) {
	ca, key := certAndKey(t)
	for _, tc := range []struct {
		situation string
		k         Config
	}{
		{
			"a token", Config{Name: "milan", Server: "https://milan:6443", CA: ca, Namespace: "renku", Token: masked.New("abc")},
		},
		{
			"a client certificate",
			Config{Name: "milan", Server: "https://milan", ClientCert: ca, ClientKey: masked.New(string(key))},
		},
		{
			"names that look like something else",
			Config{Name: "null", Server: "https://milan", Namespace: "123", Token: masked.New("true"), TLSServerName: "yes"},
		},
		{
			"a proxy",
			Config{Name: "a: b # c", Server: "https://milan", ProxyURL: "http://proxy:8080", Token: masked.New("0x1")},
		},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			data := tc.k.Bytes()
			if data != tc.k.Bytes() {
				t.Error("two calls differ")
			}
			got, err := Parse([]byte(data.Reveal()))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.k, got, cmp.Comparer(func(a, b masked.Value) bool { return a == b })); diff != "" {
				t.Error(diff)
			}
			theirs, err := clientcmd.RESTConfigFromKubeConfig([]byte(data.Reveal()))
			if err != nil {
				t.Fatal(err)
			}
			if theirs.Host != tc.k.Server || theirs.BearerToken != tc.k.Token.Reveal() || !bytes.Equal(theirs.CAData, tc.k.CA) ||
				theirs.ServerName != tc.k.TLSServerName || !bytes.Equal(theirs.CertData, tc.k.ClientCert) {
				t.Errorf("client-go reads %+v", theirs)
			}
		})
	}
}

func FuzzParseKubeconfig(f *testing.F) {
	ca, key := certAndKey(f)
	encode := base64.StdEncoding.EncodeToString
	f.Add([]byte(strings.Replace(goodKubeconfig, "CA", encode(ca), 1)))
	f.Add(
		[]byte(Config{Name: "x", Server: "https://x", ClientCert: ca, ClientKey: masked.New(string(key))}.Bytes().Reveal()),
	)
	f.Add(
		[]byte("{current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], clusters: [{name: a, cluster: " +
			"{server: 'https://a'}}], users: [{name: a, user: {token: a}}]}"),
	)
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("users: [{name: a, user: {exec: {command: x}, tokenFile: /x, as: y}}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := Parse(data)
		if err != nil {
			var bad Error
			if !errors.As(err, &bad) || len(bad.Problems) == 0 {
				t.Fatalf("error %v", err)
			}
			if slices.ContainsFunc(bad.Problems, func(p Problem) bool { return p.Rule == "" || p.Detail == "" }) {
				t.Fatalf("an empty problem: %v", bad.Problems)
			}
			return
		}
		again, err := Parse([]byte(k.Bytes().Reveal()))
		if err != nil {
			t.Fatalf("what was read can't be read again: %v", err)
		}
		if diff := cmp.Diff(k, again, cmp.Comparer(func(a, b masked.Value) bool { return a == b })); diff != "" {
			t.Fatal(diff)
		}
	})
}
