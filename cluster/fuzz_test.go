package cluster

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"carrick/cluster/clustertest/hostile"
)

func addTexts(f *testing.F, add func(string)) {
	f.Helper()
	for name, text := range hostile.Texts {
		if name != "a long line" { // mutations of it cost time, and find nothing
			add(text)
		}
	}
}

// Whatever comes in, what comes out can do nothing to a terminal.
func FuzzCleanTexts(f *testing.F) {
	addTexts(f, func(text string) { f.Add(text) })
	f.Fuzz(func(t *testing.T, text string) {
		out := Clean(text)
		if bad := hostile.Unfit(out); bad != "" {
			t.Errorf("%q: %s", text, bad)
		}
		if Clean(out) != out {
			t.Errorf("%q is not clean: %q", text, out)
		}
		if hostile.Unfit(text) == "" && out != text {
			t.Errorf("%q was fit, and became %q", text, out)
		}
		if line := sentenced(text); strings.ContainsAny(line, "\n\t") || utf8.RuneCountInString(line) > longestSentence {
			t.Errorf("%q is no sentence: %q", text, line)
		}
	})
}

// A foreign kubeconfig that is taken is read as client-go would read it, and has
// nothing that runs a command, reads a file or trusts just anybody.
func FuzzForeignKubeconfig(f *testing.F) {
	ca, key := certAndKey(f)
	encode := base64.StdEncoding.EncodeToString
	f.Add([]byte(strings.Replace(goodKubeconfig, "CA", encode(ca), 1)))
	const one = "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], clusters: [{name: a, cluster: {server: 'https://a'%s}}], users: [{name: a, user: {%s}}]}"
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
		k, err := ParseKubeconfig(data)
		if err != nil {
			if bad := hostile.Unfit(err.Error()); bad != "" {
				t.Errorf("the error: %s", bad)
			}
			return
		}
		theirs, err := clientcmd.Load(data)
		if err != nil {
			return // client-go is stricter here: it would refuse what we take, which harms nobody
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
		case at.Server != k.Server, at.ProxyURL != k.ProxyURL, at.TLSServerName != k.TLSServerName, !bytes.Equal(at.CertificateAuthorityData, k.CA):
			t.Errorf("client-go reads another cluster: %#v and %#v", at, k)
		case as.Token != k.Token.Reveal(), !bytes.Equal(as.ClientCertificateData, k.ClientCert), string(as.ClientKeyData) != k.ClientKey.Reveal(), context.Namespace != k.Namespace:
			t.Error("client-go reads another user")
		}
		if cfg := configOf(k); cfg.ExecProvider != nil || cfg.AuthProvider != nil || cfg.Insecure || cfg.BearerTokenFile != "" || cfg.CAFile != "" || cfg.CertFile != "" || cfg.KeyFile != "" || cfg.Proxy != nil {
			t.Errorf("it is used with %v", cfg)
		}
	})
}

// Whoever answers in the place of an API: nothing it says reaches anybody as it
// is, and the token that it was sent not at all.
func FuzzWebAnswers(f *testing.F) {
	const token = "t0ken-of-an-admin"
	f.Add(500, "application/json", "", `{"error":{"code":1e300,"message":"\u001b[2J","detail":["x"]}}`)
	f.Add(401, "text/html", "", "<html>\x1b]0;x\x07")
	f.Add(302, "", "https://evil.example.org/?"+token, "")
	f.Add(400, "application/json", "", `{"error":"authorization_pending","error_description":"\u202e `+token+`"}`)
	f.Add(200, "application/json", "", `[{"a":1},{]`)
	f.Add(200, "application/json", "", `{"is_admin":"yes","username":{}}`)
	addTexts(f, func(text string) { f.Add(403, "text/plain", text, text) })
	f.Fuzz(func(t *testing.T, status int, kind, location, body string) {
		if status < 200 || status > 599 {
			return
		}
		for _, secret := range []bool{false, true} {
			a := webAnswer{status: status, header: http.Header{"Content-Type": {kind}, "Location": {location}}, body: []byte(body), secret: secret}
			var out struct {
				Admin bool `json:"is_admin"`
				Name  string
			}
			_, err := a.decode("GET https://renku.example.org/api", "https://renku.example.org/api", &out, nil)
			if err == nil {
				continue
			}
			for _, text := range []string{Explain(err), Clean(err.Error())} {
				if bad := hostile.Unfit(text); bad != "" {
					t.Errorf("%q: %s", body, bad)
				}
			}
			if web, ok := err.(*WebError); ok && hostile.Unfit(web.Error()) != "" {
				t.Errorf("the error itself: %s", hostile.Unfit(web.Error()))
			}
			shown := strings.ReplaceAll(err.Error(), Clean(location), "") // where it leads to is no body
			if secret && len(body) > 40 && !json.Valid([]byte(body)) && strings.Contains(shown, body) {
				t.Errorf("a body that may hold a token is shown: %v", err)
			}
		}
	})
}

// What an API server says of an error is one clean sentence.
func FuzzExplain(f *testing.F) {
	addTexts(f, func(text string) { f.Add(403, text, text, text, "Forbidden") })
	f.Add(403, `secrets "x" is forbidden: User "\x1b[2J" cannot get resource "secrets" in API group "" in the namespace "a"`, "secrets", "x", "Forbidden")
	f.Add(409, `Apply failed with 1 conflict: conflict with "a\nb": .x`, "", "", "Conflict")
	f.Add(422, "x", "kind", "name", "Invalid")
	f.Fuzz(func(t *testing.T, code int, message, kind, name, reason string) {
		err := &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: int32(code), Reason: metav1.StatusReason(reason), Message: message,
			Details: &metav1.StatusDetails{Name: name, Kind: kind, Group: name, Causes: []metav1.StatusCause{
				{Type: metav1.CauseTypeFieldManagerConflict, Message: message, Field: name}, {Message: message, Field: kind},
			}},
		}}
		text := Explain(err)
		if bad := hostile.Unfit(text); bad != "" || strings.Contains(text, "\n") || utf8.RuneCountInString(text) > longestSentence {
			t.Errorf("%s: %q", bad, text)
		}
		_ = answerOf(err)
	})
}

// A diff of Secrets shows no value, in whatever place and shape it stands.
func FuzzDiffOfSecrets(f *testing.F) {
	f.Add("key", "other", "data", "a", "b")
	f.Add("a\x1b[31m", "b", "stringData", "c\nd: e", "\u202e")
	f.Add("data", "stringData", "stringData", "kind: Secret", "---")
	f.Fuzz(func(t *testing.T, key, note, place, label, word string) {
		const mark = "s3cret-4711-value"
		if place != "data" && place != "stringData" || strings.Contains(key+note+label+word, mark[:6]) {
			return
		}
		object := func(value string) *unstructured.Unstructured {
			raw := value
			if place == "data" {
				raw = base64.StdEncoding.EncodeToString([]byte(value))
			}
			return &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Secret", "type": word,
				"metadata": map[string]any{
					"name": note, "labels": map[string]any{label: word},
					"annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": raw},
				},
				place: map[string]any{key: raw, note: word},
			}}
		}
		before, after := object(mark+" before "+word), object(mark+" after "+word)
		for _, pair := range [][2]*unstructured.Unstructured{{before, after}, {nil, after}, {before, nil}, {before, before}} {
			text := Diff(pair[0], pair[1])
			if strings.Contains(text, mark) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(mark))[:20]) {
				t.Errorf("the diff shows a value:\n%s", text)
			}
			if bad := hostile.Unfit(text); bad != "" {
				t.Error(bad)
			}
		}
	})
}
