package probe

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const (
	robot  = "robot$pull"
	secret = "p:ß\"w\n0rd"
)

// registryServer is a fake registry with a token service, as the distribution project specifies them.
type registryServer struct {
	*httptest.Server
	asked     []string // paths, in order
	leaked    []string // paths that were given a credential
	challenge string   // of /v2/
	basic     bool     // the registry takes the login itself
	open      bool
}

func newRegistry(t *testing.T, root authority) *registryServer {
	t.Helper()
	r := &registryServer{}
	mux := http.NewServeMux()
	mux.HandleFunc("/v2/", func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
		user, password, given := req.BasicAuth()
		switch {
		case r.open, req.Header.Get("Authorization") == "Bearer good", r.basic && given && user == robot &&
			password == secret:
			_, _ = w.Write([]byte("{}"))
		default:
			w.Header().Set("WWW-Authenticate", r.challenge)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED"}]}`, http.StatusUnauthorized)
		}
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, req *http.Request) {
		user, password, _ := req.BasicAuth()
		if user != robot || password != secret || req.URL.Query().Get("service") != "the, registry" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		_, _ = fmt.Fprint(w, `{"access_token":"good","expires_in":60}`)
	})
	mux.HandleFunc(
		"/moved", func(w http.ResponseWriter, req *http.Request) { http.Redirect(w, req, "/trap", http.StatusFound) },
	)
	mux.HandleFunc("/notoken", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, `{}`) })
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.asked = append(r.asked, req.URL.Path)
		if req.Header.Get("Authorization") != "" {
			r.leaked = append(r.leaked, req.URL.Path)
		}
		mux.ServeHTTP(w, req)
	}))
	r.TLS = &tls.Config{Certificates: []tls.Certificate{root.issue(t, nil).tls()}}
	r.Config.ErrorLog = quiet
	r.StartTLS()
	t.Cleanup(r.Close)
	return r
}

func TestRegistryLogin(t *testing.T) {
	root := newAuthority(t, "root", time.Now().AddDate(1, 0, 0))
	for _, c := range []struct {
		name      string
		challenge string // %s is the server's address
		password  string
		basic     bool
		open      bool
		want      error
		leaks     string // paths that see a credential
	}{
		{name: "bearer", challenge: `Bearer realm="%s/token",service="the, registry",scope="x"`, leaks: "/token /v2/"},
		{
			name: "bearer without quotes", challenge: `bearer error="\"a\", b", REALM=%s/token, service="the, registry"`,
			leaks: "/token /v2/",
		},
		{
			name: "bearer, refused", challenge: `Bearer realm="%s/token",service="the, registry"`, password: "other",
			want: ErrLogin, leaks: "/token",
		},
		{name: "basic", challenge: `Basic realm="r"`, basic: true, leaks: "/v2/"},
		{name: "basic, refused", challenge: `Basic realm="r"`, basic: true, password: "other", want: ErrLogin, leaks: "/v2/"},
		{name: "no login is asked for", open: true},
		{name: "the token service moves on", challenge: `Bearer realm="%s/moved"`, want: ErrNoRegistry, leaks: "/moved"},
		{name: "no token", challenge: `Bearer realm="%s/notoken"`, want: ErrNoRegistry, leaks: "/notoken"},
		{name: "a realm elsewhere", challenge: `Bearer realm="https://auth.example.org/token"`, want: ErrElsewhere},
		{name: "a realm in plain text", challenge: `Bearer realm="http://127.0.0.1/token"`, want: ErrElsewhere},
		{name: "a realm that is none", challenge: `Bearer realm="::"`, want: ErrNoRegistry},
		{name: "a realm with a password", challenge: `Bearer realm="https://a:b@127.0.0.1/"`, want: ErrNoRegistry},
		{name: "a quote without an end", challenge: `Bearer realm="%s/token`, want: ErrNoRegistry},
		{name: "another scheme", challenge: `Negotiate`, want: ErrNoRegistry},
		{name: "no challenge", want: ErrNoRegistry},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRegistry(t, root)
			r.challenge, r.basic, r.open = c.challenge, c.basic, c.open
			if strings.Contains(c.challenge, "%s") {
				r.challenge = fmt.Sprintf(c.challenge, r.URL)
			}
			l := RegistryLogin{Registry: strings.TrimPrefix(r.URL, "https://"), User: robot, Password: secret, Roots: root.pem()}
			if c.password != "" {
				l.Password = c.password
			}
			report, err := l.Try(t.Context())
			if !errors.Is(err, c.want) || report.Open != c.open || report.URL != r.URL+"/v2/" {
				t.Errorf("got %+v, %v", report, err)
			}
			if err != nil && (strings.Contains(err.Error(), l.Password) || strings.Contains(err.Error(), "?")) {
				t.Errorf("the error says too much: %v", err)
			}
			if got := strings.Join(r.leaked, " "); got != c.leaks {
				t.Errorf("a credential went to %q, not to %q", got, c.leaks)
			}
			if strings.Contains(strings.Join(r.asked, " "), "/trap") {
				t.Error("a redirect was followed")
			}
		})
	}
}

func TestRegistryThatIsNone(t *testing.T) {
	root := newAuthority(t, "root", time.Now().AddDate(1, 0, 0))
	for status, body := range map[int]string{
		http.StatusOK: "<html>", http.StatusNotFound: "", http.StatusFound: "", http.StatusBadGateway: "",
	} {
		var given bool
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			given = given || req.Header.Get("Authorization") != ""
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Location", "https://example.org/")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		server.TLS = &tls.Config{Certificates: []tls.Certificate{root.issue(t, nil).tls()}}
		server.Config.ErrorLog = quiet
		server.StartTLS()
		_, err := RegistryLogin{
			Registry: strings.TrimPrefix(server.URL, "https://"), User: robot, Password: secret, Roots: root.pem(),
		}.Try(t.Context())
		server.Close()
		if !errors.Is(err, ErrNoRegistry) || given {
			t.Errorf("%d: %v; a credential was sent: %v", status, err, given)
		}
	}
	_, err := RegistryLogin{Registry: "127.0.0.1:1", User: robot, Password: secret}.Try(t.Context())
	if err == nil || errors.Is(err, ErrLogin) || strings.Contains(err.Error(), secret) {
		t.Errorf("nobody listens: %v", err)
	}
}

func TestValidRegistry(t *testing.T) {
	for _, good := range []string{
		"docker.io", "ghcr.io", "harbor.example.org:8443", "localhost:5000", "10.0.0.1", "[::1]:5000", "Harbor",
	} {
		if err := ValidRegistry(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "https://ghcr.io", "ghcr.io/osc", "user@ghcr.io", "ghcr.io:", "ghcr.io:0", "ghcr.io:99999", "ghcr.io:http", "a b",
		"a\n", "a\"b", "$(x)", "-a", "a..b",
		"::1", "[::1", "ghcr.io?x", "ghcr.io#x", "grüße.example.org", "a_b.example.org", strings.Repeat("a.", 200) + "a",
	} {
		if err := ValidRegistry(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
