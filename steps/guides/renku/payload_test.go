package renku

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func row(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{
		"name": "Remote", "config_name": "remote.yaml", "session_protocol": "https", "session_host": "sessions.example.org",
		"session_port": 443.0, "session_path": "",
		"session_ingress_annotations": map[string]any{"a/b": "c"},
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

const (
	defaultCert = `{"session_tls_secret_name":"","session_ingress_use_default_cluster_tls_cert":true}`
	namedCert   = `{"session_tls_secret_name":"x","session_ingress_use_default_cluster_tls_cert":false}`
)

func TestPatches(t *testing.T) {
	for _, tc := range []struct{ situation, want, have, patches, err string }{
		{situation: "as planned", want: namedCert, have: namedCert},
		{
			situation: "nulls are left out of answers", want: defaultCert,
			have: `{"session_ingress_use_default_cluster_tls_cert":true}`,
		},
		{
			situation: "the flag that POST drops, with both keys", want: defaultCert,
			have:    `{"session_tls_secret_name":"","session_ingress_use_default_cluster_tls_cert":false}`,
			patches: "[" + defaultCert + "]",
		},
		{
			situation: "a named Secret gives way to the default", want: defaultCert, have: namedCert,
			patches: "[" + defaultCert + "]",
		},
		{
			situation: "the default gives way to a named Secret, by way of http", want: namedCert,
			have:    `{"session_ingress_use_default_cluster_tls_cert":true}`,
			patches: `[{"session_protocol":"http"},` + namedCert + `,{"session_protocol":"https"}]`,
		},
		{
			situation: "the same, stopped after the first request", want: namedCert,
			have:    `{"session_protocol":"http","session_ingress_use_default_cluster_tls_cert":true}`,
			patches: `[` + namedCert + `,{"session_protocol":"https"}]`,
		},
		{
			situation: "the same, stopped after the second", want: namedCert,
			have:    `{"session_protocol":"http","session_tls_secret_name":"x"}`,
			patches: `[{"session_protocol":"https"}]`,
		},
		{
			situation: "one named Secret for another", want: namedCert, have: `{"session_tls_secret_name":"y"}`,
			patches: "[" + namedCert + "]",
		},
		{
			situation: "other fields", want: `{"session_port":8443,"session_path":"/s"}`, have: `{}`,
			patches: `[{"session_port":8443,"session_path":"/s"}]`,
		},
		{
			situation: "what can be taken away", want: `{"session_ingress_annotations":{}}`,
			have:    `{"session_path":"/s","session_storage_class":"fast"}`,
			patches: `[{"session_path":"","session_storage_class":"","session_ingress_annotations":{}}]`,
		},
		{
			situation: "what can't", want: `{}`, have: `{"service_account_name":"sa"}`,
			err: "service_account_name cannot be removed",
		},
		{
			situation: "with http TLS counts for nothing", want: `{"session_protocol":"http"}`,
			have: `{"session_protocol":"http","session_ingress_use_default_cluster_tls_cert":true}`,
		},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			want, have := row(t, tc.want), row(t, tc.have)
			got, err := patches(want, have)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error %v", err)
				}
				return
			}
			var expected []map[string]any
			if tc.patches != "" {
				if err := json.Unmarshal([]byte(tc.patches), &expected); err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(expected, got); d != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, d)
			}
		})
	}
}

func TestClusterProblems(t *testing.T) {
	if bad := clusterProblems(row(t, namedCert)); len(bad) > 0 {
		t.Fatalf("a good payload: %v", bad)
	}
	if bad := clusterProblems(row(t, defaultCert)); len(bad) > 0 {
		t.Fatalf("a good payload: %v", bad)
	}
	for text, why := range map[string]string{
		`{"name":"abcd"}`:                                              "4 characters",
		`{"config_name":"x"}`:                                          "config name",
		`{"session_protocol":"ftp"}`:                                   "not http or https",
		`{"session_host":""}`:                                          "sessions.host is not set",
		`{"session_host":"a:443"}`:                                     "more than a host name",
		`{"session_host":"https://a"}`:                                 "without https://",
		`{"session_host":"a_b"}`:                                       "contains _",
		`{"session_port":0}`:                                           "from 1 to 65535",
		`{"session_port":1.5}`:                                         "from 1 to 65535",
		`{"session_path":"/a/"}`:                                       "ends with /",
		`{"session_ingress_annotations":{"a/b":true}}`:                 "not a string: a/b is true",
		`{"session_ingress_annotations":7}`:                            "not a map of strings",
		`{"service_account_name":"x"}`:                                 "2 to 63",
		`{"session_storage_class":"` + strings.Repeat("x", 257) + `"}`: "at most 256",
		`{"session_tls_secret_name":"x","session_ingress_use_default_cluster_tls_cert":true}`: "exactly one of",
		`{"session_tls_secret_name":"","session_ingress_use_default_cluster_tls_cert":false}`: "exactly one of",
		`{"color":"red"}`: "has no field",
	} {
		p := row(t, namedCert)
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		if bad := strings.Join(clusterProblems(p), "; "); !strings.Contains(bad, why) {
			t.Errorf("%s: problems %q", text, bad)
		}
	}
}

func TestGeneratedAnnotations(t *testing.T) {
	const portal = "https://renku.example.org"
	tab := generated(nginxController, portal, false, true)
	if len(tab) != 3 || tab[bodySize] != "0" || tab[bufferSize] != "8k" || tab[buffering] != "off" {
		t.Errorf("in a tab of their own: %v", tab)
	}
	frame := generated(nginxController, portal, true, true)
	if frame[corsOrigin] != portal ||
		frame[configSnippet] != "more_set_headers \"Content-Security-Policy: frame-ancestors 'self' "+
			"https://renku.example.org\";\n" {
		t.Errorf("framed: %v", frame)
	}
	if !headerNames.MatchString(allowedHeaders) {
		t.Errorf("the allowed headers are no list of names: %s", allowedHeaders)
	}
	if bad := notText(frame); len(bad) > 0 {
		t.Errorf("no text: %v", bad)
	}
	if without := generated(nginxController, portal, true, false); without[configSnippet] != nil ||
		without[enableCORS] != "true" {
		t.Errorf("framed without snippets: %v", without)
	}
	if other := generated("traefik.io/ingress-controller", portal, true, true); len(other) != 0 {
		t.Errorf("for Traefik: %v", other)
	}
	for controller, word := range map[string]string{
		"traefik.io/ingress-controller": "Middleware", "haproxy.org/ingress-controller/haproxy": "haproxy.org/",
		"projectcontour.io/x/contour": "ContourConfiguration", "example.org/other": "Gateway API",
	} {
		if text := others(controller, portal); !strings.Contains(text, word) || !strings.Contains(text, portal) {
			t.Errorf("%s: %s", controller, text)
		}
	}
}
