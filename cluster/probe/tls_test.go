package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serveTLS starts an HTTPS server with cert and returns its address.
func serveTLS(t *testing.T, cert tls.Certificate, change func(*tls.Config)) (hostport string) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	server.EnableHTTP2 = true
	server.Config.ErrorLog = quiet
	if change != nil {
		change(server.TLS)
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func TestTLS(t *testing.T) {
	years := time.Now().AddDate(10, 0, 0)
	root := newAuthority(t, "root", years)
	middle := root.below(t, "middle", years)
	stranger := newAuthority(t, "stranger", years)
	expired := root.issue(t, func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().AddDate(0, 0, -9), time.Now().AddDate(0, 0, -3)
	})
	good := root.issue(t, nil)
	asking := func(version uint16, ask tls.ClientAuthType) func(*tls.Config) {
		return func(c *tls.Config) { c.MinVersion, c.MaxVersion, c.ClientAuth = version, version, ask }
	}

	for _, tc := range []struct {
		situation  string
		cert       tls.Certificate
		config     func(*tls.Config)
		serverName string
		kind       Problem
		words      string
		noReport   bool
	}{
		{situation: "trusted, by address", cert: good.tls()},
		{situation: "trusted, by name", cert: good.tls(), serverName: "localhost"},
		{situation: "trusted, by a name with a dot at its end", cert: good.tls(), serverName: "localhost."},
		{situation: "trusted through an intermediate", cert: middle.issue(t, nil).tls(middle)},
		{
			situation: "unknown authority", cert: stranger.issue(t, nil).tls(), kind: UnknownAuthority,
			words: "issuer: stranger",
		},
		{
			situation: "name mismatch", cert: good.tls(), serverName: "rome.example.org", kind: NameMismatch,
			words: "not for rome.example.org",
		},
		{situation: "expired", cert: expired.tls(), kind: Expired, words: "expired 3 days ago"},
		{
			situation: "a client certificate is welcome", cert: good.tls(),
			config: asking(tls.VersionTLS13, tls.RequestClientCert),
		},
		{
			situation: "a client certificate is a must, TLS 1.3", cert: good.tls(), kind: ClientCertRequired,
			config: asking(tls.VersionTLS13, tls.RequireAnyClientCert), words: "requires a client certificate",
		},
		{
			situation: "a client certificate is a must, TLS 1.2", cert: good.tls(), kind: ClientCertRequired,
			config: asking(tls.VersionTLS12, tls.RequireAnyClientCert), words: "requires a client certificate", noReport: true,
		},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			t.Parallel()
			hostport := serveTLS(t, tc.cert, tc.config)
			report, err := TLS(t.Context(), hostport, tc.serverName, root.pem())
			if (err != nil) != tc.noReport {
				t.Fatalf("error %v", err)
			}
			if report.Kind != tc.kind || !strings.Contains(report.Problem, tc.words) {
				t.Errorf("got %q, %q, want %q, %q", report.Kind, report.Problem, tc.kind, tc.words)
			}
			if tc.noReport {
				return
			}
			if report.Trusted != (tc.kind == "") || (report.Problem == "") != report.Trusted {
				t.Errorf("trusted %v, problem %q", report.Trusted, report.Problem)
			}
			if report.ALPN != "h2" || !strings.HasPrefix(report.Version, "TLS 1.") ||
				len(report.Chain) != len(tc.cert.Certificate) ||
				strings.Join(report.Names, " ") != "localhost 127.0.0.1" || report.NotAfter.IsZero() || report.Latency <= 0 {
				t.Errorf("report %+v", report)
			}
		})
	}
}

func TestTLSWithoutAHandshake(t *testing.T) {
	root := newAuthority(t, "root", time.Now().AddDate(1, 0, 0)).pem()
	plainHTTP := httptest.NewUnstartedServer(http.NotFoundHandler())
	plainHTTP.Config.ErrorLog = quiet
	plainHTTP.Start()
	t.Cleanup(plainHTTP.Close)

	for _, tc := range []struct {
		situation string
		hostport  string
		kind      Problem
		is        error
	}{
		{situation: "plain HTTP", hostport: plainHTTP.Listener.Addr().String(), kind: NotTLS},
		{
			situation: "another protocol", kind: NotTLS,
			hostport: listen(t, func(conn net.Conn) { _, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.9\r\n") }),
		},
		{situation: "closed at once", hostport: listen(t, hangUp), kind: Other},
		{situation: "refused", hostport: nobody(t), is: syscall.ECONNREFUSED},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			report, err := TLS(t.Context(), tc.hostport, "", root)
			if err == nil || tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("error %v", err)
			}
			if report.Kind != tc.kind || report.Trusted || (tc.kind == "") != (report.Problem == "") {
				t.Errorf("report %+v", report)
			}
		})
	}

	t.Run("a black hole ends with the deadline", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := TLS(ctx, blackHole(t), "", root)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Minute {
			t.Errorf("error %v after %v", err, time.Since(start))
		}
	})
	t.Run("roots that hold nothing are not the system's", func(t *testing.T) {
		if _, err := TLS(t.Context(), nobody(t), "", []byte{}); !errors.Is(err, errNoPEM) {
			t.Errorf("error %v", err)
		}
	})
}

// hangUp reads the ClientHello and closes the connection, so that it ends without a reset.
func hangUp(conn net.Conn) {
	_, _ = conn.Read(make([]byte, 64<<10))
	conn.Close()
}
