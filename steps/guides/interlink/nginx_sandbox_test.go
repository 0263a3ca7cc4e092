package interlink

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"carrick/cluster"
	"carrick/cluster/certificate"
	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/cluster/probe"
)

// The shipped configuration works in front of a real API server for a job that has only a ServiceAccount's token and
// the endpoint's CA.
func TestVerifyProxyInFrontOfAnAPIServer(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := clustertest.Start(t)
	const ns = "through-the-proxy"
	c := box.Open(t, clustertest.Local, cluster.Options{})
	box.Run(t, clustertest.Local, "", "create", "namespace", ns)
	t.Cleanup(func() { box.Cleanup(t, clustertest.Local, "delete", "namespace", ns, "--wait=false") })
	box.Run(t, clustertest.Local, "", "create", "serviceaccount", "job", "-n", ns)
	box.Run(
		t, clustertest.Local, "", "create", "rolebinding", "job", "-n", ns, "--clusterrole=edit",
		"--serviceaccount="+ns+":job",
	)
	box.Run(t, clustertest.Local, manyConfigMaps(8, 600<<10), "create", "-n", ns, "-f", "-")
	token, _, err := c.RequestToken(t.Context(), ns, "job", cluster.TokenOptions{Expires: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(c.Server())
	if err != nil {
		t.Fatal(err)
	}
	shipped := runProxy(t, server.Host, inCluster, c.CA(), nil)
	x := behind{p: shipped, http: shipped.client(shipped.ca, "", tls.VersionTLS13), token: token.Reveal(), ns: ns}
	t.Run("who it is", x.whoItIs)
	t.Run("a large list", x.largeList)
	t.Run("a watch on which nothing happens", func(t *testing.T) {
		short := runProxy(t, server.Host, inCluster, c.CA(), func(c *nginxConf) { c.readAfter = 2 * time.Second })
		x.quietWatch(t, short, box)
	})
	t.Run("what does not get through", x.kept)
	t.Run("certificates", x.certificates)
}

// behind is a job that uses the API through the proxy.
type behind struct {
	p     proxyRun
	http  *http.Client
	token string
	ns    string
}

func manyConfigMaps(n, size int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(
			&b, "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: big-%d}, data: {x: %s}}\n", i,
			strings.Repeat("0123456789", size/10),
		)
	}
	return b.String()
}

func (x behind) whoItIs(t *testing.T) {
	body := strings.NewReader(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`)
	r, err := http.NewRequest(http.MethodPost, x.p.url("/apis/authentication.k8s.io/v1/selfsubjectreviews"), body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+x.token)
	r.Header.Set("Content-Type", "application/json")
	res, err := x.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var got struct {
		Status struct{ UserInfo struct{ Username string } }
	}
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil ||
		got.Status.UserInfo.Username != "system:serviceaccount:"+x.ns+":job" {
		t.Errorf("%d %+v: %v", res.StatusCode, got, err)
	}
	if status, _, err := ask(t, x.http, "GET", x.p.url("/api"), "not a token", nil); err != nil ||
		status != http.StatusUnauthorized {
		t.Errorf("a wrong token: %d %v", status, err)
	}
	if status, _, err := ask(t, x.http, "GET", x.p.url("/api/v1/namespaces"), "", nil); err != nil ||
		status != http.StatusForbidden && status != http.StatusUnauthorized {
		t.Errorf("without a token: %d %v", status, err)
	}
}

func (x behind) largeList(t *testing.T) {
	status, body, err := ask(t, x.http, "GET", x.p.url("/api/v1/namespaces/"+x.ns+"/configmaps"), x.token, nil)
	if err != nil || status != 200 || len(body) < 4<<20 {
		t.Fatalf("%d, %d bytes: %v", status, len(body), err)
	}
	var list struct{ Items []any }
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&list); err != nil || len(list.Items) < 8 {
		t.Errorf("%d of 8: %v", len(list.Items), err)
	}
}

// quietWatch opens the same idle watch through the shipped configuration and through a proxy with a timeout of two
// seconds. After the second watch is closed, an event must still arrive on the first one.
func (x behind) quietWatch(t *testing.T, short proxyRun, box *clustertest.Sandbox) {
	open := func(p proxyRun) *bufio.Reader {
		r, err := http.NewRequestWithContext(
			t.Context(), "GET",
			p.url(
				"/api/v1/namespaces/"+x.ns+"/configmaps?watch=1&resourceVersion=0&fieldSelector=metadata.name%3Dkube-root-ca.crt",
			),
			nil,
		)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+x.token)
		res, err := p.client(p.ca, "", 0).Do(r)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%v %v", res, err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		in := bufio.NewReader(res.Body)
		if l, err := in.ReadString('\n'); err != nil || !strings.Contains(l, `"ADDED"`) {
			t.Fatalf("%.80q %v", l, err)
		}
		return in
	}
	held, cut := open(x.p), open(short)
	if l, err := cut.ReadString('\n'); err == nil {
		t.Fatalf("the watch that is to be cut says %.80q", l)
	}
	box.Run(t, clustertest.Local, "", "annotate", "configmap", "kube-root-ca.crt", "-n", x.ns, "seen=yes")
	if l, err := held.ReadString('\n'); err != nil || !strings.Contains(l, `"MODIFIED"`) {
		t.Errorf("the shipped configuration cuts it, too: %.80q %v", l, err)
	}
}

func (x behind) kept(t *testing.T) {
	for _, path := range []string{
		"/", "/metrics", "/healthz", "/livez", "/readyz", "/logs/", "/debug/pprof/", "/openid/v1/jwks",
		"/.well-known/openid-configuration",
	} {
		if status, body, err := ask(t, x.http, "GET", x.p.url(path), x.token, nil); err != nil || status != 404 ||
			!bytes.Contains(body, []byte("nginx")) {
			t.Errorf("%s: %d %v", path, status, err)
		}
	}
	for _, path := range []string{"/api", "/apis", "/version", "/openapi/v3"} {
		if status, _, err := ask(t, x.http, "GET", x.p.url(path), x.token, nil); err != nil || status != 200 {
			t.Errorf("%s: %d %v", path, status, err)
		}
	}
	if status, _, err := ask(t, http.DefaultClient, "GET", "http://"+x.p.address+"/version", x.token, nil); err != nil ||
		status != http.StatusBadRequest {
		t.Errorf("plain HTTP: %d %v", status, err)
	}
}

// certificates verifies that probe.TLS distinguishes the correct CA, a wrong CA, a wrong host name and an expired
// certificate.
func (x behind) certificates(t *testing.T) {
	other, err := certificate.NewAuthority("another CA", 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		host string
		ca   []byte
		kind probe.Problem
	}{
		"right": {"127.0.0.1", x.p.ca, ""}, "wrong CA": {"127.0.0.1", other.Cert, probe.UnknownAuthority},
		"wrong host": {"10.1.2.3", x.p.ca, probe.NameMismatch},
	} {
		got, err := probe.TLS(t.Context(), x.p.address, want.host, want.ca)
		if err != nil || got.Kind != want.kind {
			t.Errorf("%s: %s %v", name, got.Problem, err)
		}
	}
	ended := expired(t)
	x.p.shows(t, ended.Cert, ended.Key)
	if got, err := probe.TLS(t.Context(), x.p.address, "", ended.Cert); err != nil || got.Kind != probe.Expired {
		t.Errorf("ended: %s %v", got.Problem, err)
	}
}
