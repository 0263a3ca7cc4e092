package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"carrick/cluster/kubeconfig"
	"carrick/cluster/masked"
)

func TestParse(t *testing.T) {
	for line, want := range map[string]string{
		"GET /api/v1/namespaces":                                                 "list namespaces",
		"GET /api/v1/namespaces/a":                                               "get namespaces a",
		"GET /api/v1/namespaces/a/secrets?watch=true":                            "watch secrets a",
		"GET /api/v1/namespaces/a/secrets/x":                                     "get secrets a/x",
		"PATCH /apis/rbac.authorization.k8s.io/v1/namespaces/a/roles/x":          "patch roles.rbac.authorization.k8s.io a/x !",
		"PATCH /api/v1/namespaces/a/secrets/x?dryRun=All":                        "patch secrets a/x",
		"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews":            "create selfsubjectaccessreviews.authorization.k8s.io",
		"POST /api/v1/namespaces/a/serviceaccounts/x/token":                      "create serviceaccounts/token a/x !",
		"PUT /api/v1/namespaces/a/finalize":                                      "update namespaces/finalize a !",
		"PUT /apis/certificates.k8s.io/v1/certificatesigningrequests/x/approval": "update certificatesigningrequests.certificates.k8s.io/approval x !",
		"DELETE /apis/networking.liqo.io/v1beta1/namespaces/a/gatewayservers/b":  "delete gatewayservers.networking.liqo.io a/b !",
		"GET /version":      "get /version",
		"GET /apis/apps/v1": "get /apis/apps/v1",
		"GET /api/v1/namespaces/a/pods/x/log?container=c":        "get pods/log a/x",
		"DELETE /api/v1/namespaces/a/configmaps?labelSelector=x": "delete configmaps a !",
	} {
		method, path, _ := strings.Cut(line, " ")
		u, err := url.Parse(path)
		if err != nil {
			t.Fatal(err)
		}
		r := parse(&http.Request{Method: method, URL: u})
		got := r.String()
		if r.Changes() {
			got += " !"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

const answer = `{"kind":"Secret","metadata":{"name":"x"}}`

// before returns a proxy in front of a server that reports the user of each request, and an HTTP client with the
// admin's certificate.
func before(t *testing.T) (*Proxy, *http.Client) {
	t.Helper()
	a, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(
			"Who", fmt.Sprint(len(r.TLS.PeerCertificates), r.Header.Get("Authorization"), r.Header.Get("Impersonate-User")),
		)
		_, _ = io.WriteString(w, answer)
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{a.server}, ClientAuth: tls.RequestClientCert}
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	key, err := x509.MarshalPKCS8PrivateKey(a.server.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	p := Before(t, kubeconfig.Config{
		Name: "admin", Server: s.URL, CA: a.pem,
		ClientCert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.server.Certificate[0]}),
		ClientKey:  masked.New(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))),
	})
	return p, clientOf(t, p, a.server)
}

func clientOf(t *testing.T, p *Proxy, certs ...tls.Certificate) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.CA())
	tr := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: certs}, ForceAttemptHTTP2: true, DisableCompression: true,
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// ask sends a request and returns the status code, the body and the user. If there is no response, it returns an error.
func ask(t *testing.T, c *http.Client, method, address, token string) (code int, body, who string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", token)
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), resp.Header.Get("Who"), err
}

func TestWhoAsks(t *testing.T) {
	p, admin := before(t)
	path := p.URL + "/api/v1/namespaces/a/secrets/x"
	if code, body, who, err := ask(t, admin, "GET", path, ""); code != 200 || body != answer || who != "1" || err != nil {
		t.Errorf("the admin: %d %q %q %v", code, body, who, err)
	}
	if _, _, who, err := ask(t, admin, "GET", path, "Bearer t"); who != "0Bearer t" || err != nil {
		t.Errorf("a token: %q %v", who, err)
	}
	if _, _, who, err := ask(t, clientOf(t, p), "GET", path, ""); who != "0" || err != nil {
		t.Errorf("nobody: %q %v", who, err)
	}
}

func TestFaults(t *testing.T) {
	p, c := before(t)
	path := p.URL + "/api/v1/namespaces/a/secrets/x"
	for _, x := range []struct {
		fault Fault
		code  int
		body  string // part of it
		whole bool   // the answer came to its end
	}{
		{Latency(time.Millisecond), 200, answer, true},
		{Reset(), 0, "", false},
		{ResetInBody(), 200, "", false},
		{Short(), 200, answer[:len(answer)/2], true},
		{Throttled(time.Second), 429, "too many", true},
		{Broken(), 500, "etcd", true},
		{Unavailable(), 503, "unable", true},
		{Forbidden(), 403, `cannot get resource \"secrets\" in API group \"\" in the namespace \"a\"`, true},
		{NotJSON(), 200, "<html>", true},
		{Huge(1 << 20), 200, "xxx", true},
		{CutWatch(time.Second), 200, answer, true},
		{Expired(), 200, answer, true},
	} {
		t.Run(x.fault.Name, func(t *testing.T) {
			p.Set(Rule{Resources: []string{"secrets"}, Fault: x.fault})
			code, body, _, err := ask(t, c, "GET", path, "")
			if code != x.code || !strings.Contains(body, x.body) || x.whole != (err == nil) {
				t.Errorf("%d %.200q %v", code, body, err)
			}
			if code, body, _, err := ask(t, c, "GET", p.URL+"/api/v1/pods", ""); code != 200 || body != answer || err != nil {
				t.Errorf("what no rule is about: %d %q %v", code, body, err)
			}
			p.Set()
			if code, body, _, err := ask(t, c, "GET", path, ""); code != 200 || body != answer || err != nil {
				t.Errorf("after the fault: %d %q %v", code, body, err)
			}
		})
	}
}

func TestFaultsOfWatches(t *testing.T) {
	p, c := before(t)
	for _, f := range []Fault{CutWatch(time.Minute), Expired(), Short(), ResetInBody()} {
		p.Set(Rule{Verbs: []string{"watch"}, Fault: f})
		code, body, _, err := ask(t, c, "GET", p.URL+"/api/v1/secrets?watch=true", "")
		switch f.Name {
		case Expired().Name:
			if !strings.Contains(body, `"code":410`) {
				t.Errorf("%s: %d %q", f.Name, code, body)
			}
		case CutWatch(0).Name:
			if body != answer || err != nil {
				t.Errorf("%s: %d %q %v", f.Name, code, body, err)
			}
		default:
			if strings.Contains(body, answer) {
				t.Errorf("%s: %d %q", f.Name, code, body)
			}
		}
	}
}

func TestRulesCount(t *testing.T) {
	p, c := before(t)
	p.Set(Rule{Verbs: []string{"get"}, After: 1, Times: 2, Fault: Broken()})
	var got []int
	for range 5 {
		code, _, _, _ := ask(t, c, "GET", p.URL+"/api/v1/namespaces/a/secrets/x", "")
		got = append(got, code)
	}
	if fmt.Sprint(got) != "[200 500 500 200 200]" {
		t.Errorf("got %v", got)
	}
}

func TestIntercept(t *testing.T) {
	p, c := before(t)
	path := p.URL + "/api/v1/namespaces/a/secrets/x"
	var mu sync.Mutex
	var seen []string
	var stop atomic.Bool
	note := func(when string) func(Request) bool {
		return func(r Request) bool {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, when+" "+r.String())
			return !stop.Load()
		}
	}
	p.Intercept(note("before"), note("after"))
	if code, _, _, err := ask(t, c, "DELETE", path, ""); code != 200 || err != nil {
		t.Errorf("%d %v", code, err)
	}
	if _, _, _, err := ask(t, c, "GET", path, ""); err != nil {
		t.Error(err)
	}
	stop.Store(true)
	if _, _, _, err := ask(t, c, "DELETE", path, ""); err == nil {
		t.Error("it was passed on")
	}
	mu.Lock()
	defer mu.Unlock()
	want := "before delete secrets a/x, after delete secrets a/x, before delete secrets a/x"
	if got := strings.Join(seen, ", "); got != want {
		t.Errorf("seen %q", got)
	}
	if n := p.Changes(); n != 1 {
		t.Errorf("%d changes are counted: %v", n, p.Log())
	}
}
