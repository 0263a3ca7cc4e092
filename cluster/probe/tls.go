package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// TLSReport is the result of a TLS handshake.
type TLSReport struct {
	Chain    []*x509.Certificate // as sent: the server's own first; never empty without an error
	Trusted  bool                // the chain leads to the given roots, is valid now and names the server
	Problem  string              // all problems as text; "" if trusted
	Kind     Problem             // the first of them; "" if trusted
	Names    []string            // DNS names and IP addresses that the certificate is valid for
	NotAfter time.Time           // of the server's certificate
	Version  string              // "TLS 1.3"
	ALPN     string              // "h2", "http/1.1", or "" if the server chose none
	Latency  time.Duration       // of the handshake, after the connect

	strangers bool // the server rejects clients without a certificate
}

// TLS performs a TLS handshake with hostport, sends no data, and verifies the server's certificate. The certificate
// must be valid for serverName, or for the host of hostport if serverName is "". Roots are PEM; nil are the system's,
// and anything else without a certificate is an error.
//
// The error is not nil if the handshake failed: connection refused, timeout, not TLS. Kind and Problem are then still
// set for NotTLS and ClientCertRequired.
func TLS(ctx context.Context, hostport, serverName string, roots []byte) (TLSReport, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	pool, err := Pool(roots)
	if err != nil {
		return TLSReport{}, fmt.Errorf("read the CA to trust: %w", err)
	}
	if serverName == "" {
		if serverName, _, err = net.SplitHostPort(hostport); err != nil {
			return TLSReport{}, fmt.Errorf("connect to %s: %w", plain(hostport), err)
		}
	}
	raw, latency, err := dial(ctx, hostport)
	if err != nil {
		return TLSReport{}, fmt.Errorf("connect to %s: %w", plain(hostport), err)
	}
	defer raw.Close()
	asked, done := false, &ticket{conn: raw}
	conn := tls.Client(raw, &tls.Config{
		ServerName: strings.TrimSuffix(serverName, "."),
		NextProtos: []string{"h2", "http/1.1"},
		// The chain is verified below, so that an invalid one can be reported.
		InsecureSkipVerify: true,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked = true
			return &tls.Certificate{}, nil
		},
		ClientSessionCache: done,
	})
	start := time.Now()
	if err := conn.HandshakeContext(ctx); err != nil {
		kind, words := handshakeProblem(err, asked)
		return TLSReport{
			Kind: kind, Problem: words,
		}, fmt.Errorf("TLS handshake with %s: %w", plain(hostport), orCause(ctx, err))
	}
	report := describe(conn.ConnectionState())
	report.Latency = time.Since(start)
	report.strangers = asked && refusesStrangers(conn, done, 3*latency)
	return report.judged(pool, serverName), nil
}

// Judge verifies the certificates of a report again, with other roots and for another name. Both are as in TLS, but the
// name is required.
func (r TLSReport) Judge(serverName string, roots []byte) (TLSReport, error) {
	pool, err := Pool(roots)
	if err != nil {
		return TLSReport{}, fmt.Errorf("read the CA to trust: %w", err)
	}
	return r.judged(pool, serverName), nil
}

func (r TLSReport) judged(pool *x509.CertPool, serverName string) TLSReport {
	r.Kind, r.Problem = CertProblem(r.Chain, pool, serverName, time.Time{})
	if r.strangers {
		r.Kind = ClientCertRequired
		r.Problem = strings.Trim("the server requires a client certificate; "+r.Problem, "; ")
	}
	r.Trusted = r.Kind == ""
	return r
}

// SystemAnd returns the system's roots together with the certificates in PEM.
func SystemAnd(more []byte) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	certs, err := ParseCerts(more)
	for _, cert := range certs {
		pool.AddCert(cert)
	}
	return pool, err
}

// Pool returns the certificates in PEM as a pool; nil for nil, which x509 reads as the system's roots.
func Pool(roots []byte) (*x509.CertPool, error) {
	if roots == nil {
		return nil, nil
	}
	certs, err := ParseCerts(roots)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	for _, cert := range certs {
		pool.AddCert(cert)
	}
	return pool, nil
}

func describe(state tls.ConnectionState) TLSReport {
	leaf := state.PeerCertificates[0]
	return TLSReport{
		Chain:    state.PeerCertificates,
		Names:    Names(leaf),
		NotAfter: leaf.NotAfter,
		Version:  tls.VersionName(state.Version),
		ALPN:     state.NegotiatedProtocol,
	}
}

// TLS alerts (RFC 8446, section 6).
const (
	handshakeFailure    tls.AlertError = 40
	badCertificate      tls.AlertError = 42
	unrecognizedName    tls.AlertError = 112
	certificateRequired tls.AlertError = 116
)

func handshakeProblem(err error, asked bool) (Problem, string) {
	var header tls.RecordHeaderError
	alert := alertText(err)
	switch {
	case errors.As(err, &header) && string(header.RecordHeader[:]) == "HTTP/":
		return NotTLS, "the server answers in plain HTTP, not in TLS"
	case errors.As(err, &header):
		return NotTLS, "the server does not answer in TLS"
	case needsClientCert(alert, asked):
		return ClientCertRequired, "the server requires a client certificate"
	case alert == unrecognizedName.Error():
		return NameMismatch, "the server has no certificate for that name"
	case alert != "":
		return Other, "the server aborted the handshake: " + plain(alert)
	case errors.Is(err, io.EOF):
		return Other, "the connection was closed during the handshake"
	}
	return Other, ""
}

// alertText returns the text of the TLS alert that the remote side sent, or "". Outside of QUIC, the tls package does
// not export the type of its alerts, but they have the same texts as tls.AlertError.
func alertText(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" {
		return op.Err.Error()
	}
	return ""
}

func needsClientCert(alert string, asked bool) bool {
	return alert == certificateRequired.Error() ||
		asked && (alert == badCertificate.Error() || alert == handshakeFailure.Error())
}

// refusesStrangers reports whether a TLS 1.3 server rejects a client without a certificate. It waits briefly for the
// server's alert, which arrives one round trip after the client has completed the handshake. A session ticket means
// that the server has completed the handshake too, and ends the wait.
func refusesStrangers(conn *tls.Conn, done *ticket, wait time.Duration) bool {
	if conn.ConnectionState().Version < tls.VersionTLS13 {
		return false
	}
	if err := conn.SetReadDeadline(time.Now().Add(max(wait, 50*time.Millisecond))); err != nil {
		return false
	}
	done.awaited = true
	_, err := conn.Read(make([]byte, 1))
	return needsClientCert(alertText(err), true)
}

// ticket is a TLS session cache that stores nothing. It ends a read that waits for data after the handshake when a
// session ticket arrives: servers send it after they have verified the client's certificate.
type ticket struct {
	conn    net.Conn
	awaited bool // used by one goroutine only: tls.Conn calls Put from Read
}

func (t *ticket) Get(string) (*tls.ClientSessionState, bool) { return nil, false }

func (t *ticket) Put(string, *tls.ClientSessionState) {
	if t.awaited {
		_ = t.conn.SetReadDeadline(time.Unix(1, 0)) // a deadline in the past ends the read
	}
}
