package program

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"carrick/cmd/carrick/carricktest"
	"carrick/cmd/carrick/exit"
)

// The API server rejects the token.
func TestATokenThatIsRefused(t *testing.T) {
	t.Parallel()
	server := carricktest.Served(t, &tls.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(
			w,
			`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`,
		)
	})
	refused(
		t, carricktest.Login{Server: server.URL, CA: server.Certificate(), User: "token: out-of-date"},
		"rejects the credentials",
	)
}

// An expired client certificate is not reported as a server that is down.
func TestAClientCertificateThatHasExpired(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	clerk := expired(t, dir)
	pool := x509.NewCertPool()
	pool.AddCert(clerk)
	server := carricktest.Served(
		t, &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}, http.NotFound,
	)
	refused(t, carricktest.Login{
		Server: server.URL, CA: server.Certificate(),
		User: fmt.Sprintf(
			"client-certificate: %q, client-key: %q", filepath.Join(dir, "clerk.crt"), filepath.Join(dir, "clerk.key"),
		),
	}, "client certificate: it has expired")
}

// ofAnswers matches the checks that use only the answers and need no cluster.
var ofAnswers = regexp.MustCompile(
	`The session path is|Sessions are served over|Renku accepts the pool|Each resource class fits`,
)

// passed reports whether a check passed that requires a login.
func passed(out string) bool {
	for l := range strings.Lines(out) {
		if strings.Contains(l, " pass ") && !strings.Contains(l, "but rejects these credentials") &&
			!ofAnswers.MatchString(l) {
			return true
		}
	}
	return false
}

// refused fails the test unless check and apply report why a login is rejected.
func refused(t *testing.T, l carricktest.Login, why string) {
	t.Helper()
	const patient, remotePatient = "--request-timeout=5m", "--remote-request-timeout=5m" // of a machine that is busy
	cmd := carricktest.Command(t, "check", "link.yaml", patient, remotePatient)
	l.Write(t, cmd.Dir)
	out, said, code := carricktest.Finish(t, cmd)
	if (code != exit.Unknown && code != exit.Failed) || said != "" || !strings.Contains(out, why) || passed(out) {
		t.Errorf("check: exit code %d, %q on standard error:\n%s", code, said, out)
	}
	cmd = carricktest.Command(t, "apply", "--yes", "link.yaml", patient, remotePatient)
	l.Write(t, cmd.Dir)
	out, said, code = carricktest.Finish(t, cmd)
	if code != exit.Other || out != "" || !strings.Contains(said, why) || strings.Count(said, "\n") != 1 {
		t.Errorf("apply: exit code %d, %q on standard error:\n%s", code, said, out)
	}
}

// Text that an API server returns is cleaned before it reaches the terminal.
func TestAnAPIServerThatWritesEscapeSequences(t *testing.T) {
	t.Parallel()
	const evil = `\u001b]0;owned\u0007\u001b[2J\u009b31m`
	server := carricktest.Served(t, &tls.Config{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/version" {
			_, _ = io.WriteString(w, `{"major":"1","minor":"30","gitVersion":"v1.30.0`+evil+`"}`)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(
			w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no `+evil+`","reason":"Forbidden","code":403}`,
		)
	})
	for _, line := range []string{"check", "check -o yaml", "check --wait 1s", "diff", "apply --yes", "undo --yes"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			cmd := carricktest.Command(t, append(strings.Fields(line), "link.yaml")...)
			carricktest.Login{Server: server.URL, CA: server.Certificate(), User: "token: t"}.Write(t, cmd.Dir)
			out, said, _ := carricktest.Finish(t, cmd)
			if out+said == "" {
				t.Fatal("it said nothing: this proves nothing")
			}
			if at := strings.IndexAny(out+said, "\x1b\x07\u009b"); at >= 0 {
				t.Errorf("a control character came through: %q", (out + said)[max(0, at-80):])
			}
		})
	}
}

// expired writes clerk.crt, a client certificate that expired an hour ago, and clerk.key.
func expired(t *testing.T, dir string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "clerk"},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	carricktest.WritePEM(t, filepath.Join(dir, "clerk.crt"), "CERTIFICATE", der)
	carricktest.WritePEM(t, filepath.Join(dir, "clerk.key"), "PRIVATE KEY", private)
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return c
}
