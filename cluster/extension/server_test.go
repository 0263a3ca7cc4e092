package extension

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	admissionv1 "k8s.io/api/admission/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// line is a log that reports the addresses on which the server listens.
type line struct {
	to chan<- map[string]string
}

func (l line) Write(b []byte) (int, error) {
	var said map[string]any
	if json.Unmarshal(b, &said) == nil {
		if at, ok := said["address"].(string); ok {
			l.to <- map[string]string{said["msg"].(string): at}
		}
	}
	return len(b), nil
}

// started runs the extension with a certificate and free ports. ended receives its error.
func started(t *testing.T, ctx context.Context, o Options) (hook, health string, ended <-chan error) {
	t.Helper()
	folder := t.TempDir()
	put(t, folder, "vsphere-extensions.vsphere-extensions.svc")
	at := make(chan map[string]string, 2)
	o.Rule, o.BindAddress, o.HealthAddress, o.CertDir = rule, "127.0.0.1:0", "127.0.0.1:0", folder
	o.Log = slog.New(slog.NewJSONHandler(line{at}, nil))
	out := make(chan error, 1)
	go func() { out <- Run(ctx, o) }()
	for range 2 {
		select {
		case said := <-at:
			if a := said["reviews served"]; a != "" {
				hook = "https://" + a + reviewPath
			}
			if a := said["health served"]; a != "" {
				health = "http://" + a
			}
		case err := <-out:
			t.Fatalf("it ended: %v", err)
		}
	}
	return hook, health, out
}

func client(t *testing.T) *http.Client {
	//nolint:gosec // certificate_test.go looks at it
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func ask(t *testing.T, c *http.Client, method, url string, body []byte) (int, string, *http.Response) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(text), a
}

func TestServer(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	hook, health, ended := started(t, ctx, Options{})
	c := client(t)
	review := asked(of(`"accessModes":["ReadWriteMany"]`))
	for _, tc := range []struct {
		situation, method, url string
		body                   []byte
		status                 int
		says                   string
	}{
		{"a review", "POST", hook, review, 200, `"patchType":"JSONPatch"`},
		{"garbage", "POST", hook, []byte("none"), 400, "not an AdmissionReview"},
		{"too much", "POST", hook, make([]byte, reviewLimit+1), 413, "too large"},
		{"read", "GET", hook, nil, 405, ""},
		{"another path", "POST", strings.TrimSuffix(hook, reviewPath) + "/", review, 404, ""},
		{"alive", "GET", health + "/healthz", nil, 200, "ok"},
		{"ready", "GET", health + "/readyz", nil, 200, "ok"},
		{"counts", "GET", health + "/metrics", nil, 200, `carrick_extension_reviews_total{outcome="changed"} 1`},
		{
			"counts what is no review", "GET", health + "/metrics", nil, 200,
			`carrick_extension_reviews_total{outcome="malformed"} 2`,
		},
	} {
		if status, text, a := ask(t, c, tc.method, tc.url, tc.body); status != tc.status ||
			!strings.Contains(text, tc.says) || a.ProtoMajor != 1 {
			t.Errorf("%s: %d %.200s (HTTP/%d)", tc.situation, status, text, a.ProtoMajor)
		}
	}
	end()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// A changed claim is logged with its name and both classes. Reviews that change nothing in the cluster are logged only
// with -v=1, because carrick sends dry runs all the time.
func TestChangedClaimsAreLogged(t *testing.T) {
	const many = `{"metadata":{"generateName":"data-"},"spec":{"accessModes":["ReadWriteMany"],"storageClassName":"vsan"}}`
	dry := func(r *admissionv1.AdmissionReview) { r.Request.DryRun = new(bool); *r.Request.DryRun = true }
	for _, tc := range []struct {
		situation string
		body      []byte
		level     slog.Level
		says      string
	}{
		{
			"changed", asked(many), slog.LevelInfo,
			`level=INFO msg="claim changed" namespace=alice name=data-* class=nfs-client was=vsan uid=u-1 dryRun=false`,
		},
		{"a dry run", asked(many, dry), slog.LevelInfo, ""},
		{
			"a dry run, -v=1", asked(many, dry), verbose,
			"msg=\"claim changed\" namespace=alice name=data-* class=nfs-client was=vsan uid=u-1 dryRun=true",
		},
		{"kept", asked(of(`"accessModes":["ReadWriteOnce"]`)), slog.LevelInfo, ""},
		{"kept, -v=1", asked(of(`"accessModes":["ReadWriteOnce"]`)), verbose, `msg="claim unchanged" namespace=alice`},
		{
			"unread", asked("null"), slog.LevelInfo, `level=WARN msg="claim cannot be parsed, and is unchanged" namespace=alice`,
		},
		{"no review", []byte("{}"), slog.LevelInfo, `level=WARN msg="malformed review"`},
	} {
		var log strings.Builder
		o := Options{Rule: rule, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: tc.level}))}
		s := newServer(o, newMetrics(prometheus.NewRegistry()), nil)
		q := httptest.NewRequestWithContext(t.Context(), http.MethodPost, reviewPath, bytes.NewReader(tc.body))
		s.reviewHandler().ServeHTTP(httptest.NewRecorder(), q)
		if said := log.String(); !strings.Contains(said, tc.says) || tc.says == "" && said != "" {
			t.Errorf("%s: it logs %q", tc.situation, said)
		}
	}
}

// After a signal the extension first reports that it is not ready. It still answers requests until it exits.
func TestItEndsAfterWhoStillAsks(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	hook, health, ended := started(t, ctx, Options{ShutdownDelay: 2 * time.Second})
	c := client(t)
	end()
	for {
		if status, text, _ := ask(t, c, "GET", health+"/readyz", nil); status == 503 {
			if !strings.Contains(text, "shutting down") {
				t.Errorf("not ready: %s", text)
			}
			break
		}
	}
	status, _, a := ask(t, c, "POST", hook, asked(of(`"accessModes":["ReadWriteMany"]`)))
	if status != 200 || !a.Close {
		t.Errorf("asked while it ends: %d, closed %v", status, a.Close)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestNotReadyWithoutACertificate(t *testing.T) {
	s := newServer(Options{Rule: rule, CertDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, nil, nil)
	if why := s.unready(); !strings.Contains(why, "tls.crt") {
		t.Errorf("unready: %q", why)
	}
}

func TestAnAddressThatIsTakenIsAnError(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	hook, _, ended := started(t, ctx, Options{})
	taken := strings.TrimSuffix(strings.TrimPrefix(hook, "https://"), reviewPath)
	if err := Run(
		t.Context(), Options{Rule: rule, BindAddress: taken, HealthAddress: "127.0.0.1:0", CertDir: t.TempDir()},
	); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("%v", err)
	}
	end()
	<-ended
}

func TestOptions(t *testing.T) {
	good := Options{
		Rule: Rule{Class: "nfs-client", From: []string{"vsphere-policy"}}, CertDir: "/c", Elects: true,
		Profiles: Profiles{PSPRole: "psp:vmware-system-privileged", Level: "baseline"}, Lease: "vsphere-extensions/carrick",
	}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for says, change := range map[string]func(*Options){
		"nothing to do":         func(o *Options) { *o = Options{} },
		`"NFS" is not a Stor`:   func(o *Options) { o.Class = "NFS" },
		"cannot be replaced":    func(o *Options) { o.From = []string{""} },
		"requires a directory":  func(o *Options) { o.CertDir = "" },
		`"a/b" is not a role`:   func(o *Options) { o.PSPRole = "a/b" },
		`"high" is not one of`:  func(o *Options) { o.Level = "high" },
		`"here" is not a lease`: func(o *Options) { o.Lease = "here" },
	} {
		o := good
		change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

func TestTheContextOfTheKubeconfigCounts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	const text = `{apiVersion: v1, kind: Config, current-context: one, users: [{name: u, user: {token: t}}],
clusters: [{name: one, cluster: {server: "https://one:6443"}}, {name: two, cluster: {server: "https://two:6443"}}],
contexts: [{name: one, context: {cluster: one, user: u}}, {name: two, context: {cluster: two, user: u}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	for _, tc := range []struct{ file, name, host string }{
		{file, "", "https://one:6443"}, {file, "two", "https://two:6443"}, {"", "two", "https://two:6443"},
	} {
		if c, err := clientConfig(tc.file, tc.name); err != nil || c.Host != tc.host {
			t.Errorf("file %q, context %q: %v, %v", tc.file, tc.name, c, err)
		}
	}
	if _, err := clientConfig(file, "three"); err == nil ||
		!strings.Contains(err.Error(), `context "three" does not exist`) {
		t.Errorf("a context that does not exist: %v", err)
	}
}

func TestRightsAreOfWhatItIsTold(t *testing.T) {
	if all, beside := Rights(Options{Rule: rule}); all != nil || beside != nil {
		t.Errorf("a webhook alone needs none: %v %v", all, beside)
	}
	words := func(o Options) string {
		all, beside := Rights(o)
		text, err := json.Marshal([]any{all, beside})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	bound, levels := words(
		Options{Profiles: Profiles{PSPRole: "psp:x"}, Elects: true, Lease: "a/b"},
	), words(Options{Profiles: Profiles{Level: "baseline"}, Elects: true, Lease: "a/b"})
	if !strings.Contains(bound, `"resourceNames":["psp:x"]`) || strings.Contains(bound, "patch") ||
		strings.Contains(levels, "bind") || !strings.Contains(levels, "patch") {
		t.Errorf("%s\n%s", bound, levels)
	}
}
