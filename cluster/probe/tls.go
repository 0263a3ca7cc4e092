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

// TLSReport is what a TLS handshake showed.
type TLSReport struct {
	Chain    []*x509.Certificate // as sent: the server's own first; never empty without an error
	Trusted  bool                // the chain leads to the given roots, is in date and names the server
	Problem  string              // in plain words, all of them; "" when trusted
	Kind     Problem             // the first of them; "" when trusted
	Names    []string            // DNS names and IP addresses the certificate is good for
	NotAfter time.Time           // of the server's certificate
	Version  string              // "TLS 1.3"
	ALPN     string              // "h2", "http/1.1", or "" when the server chose none
	Latency  time.Duration       // of the handshake, after the connect

	strangers bool // it turns away who shows no certificate
}

// TLS shakes hands with hostport, sends nothing, and judges the certificate it is shown. The name that the certificate
// must be good for is serverName, or the host of hostport when that is "". Roots are PEM; nil are the system's, and
// anything else that holds no certificate is an error.
//
// The error is not nil when no handshake could be had: refused, no answer in time, not TLS. Kind and Problem then still
// say NotTLS or ClientCertRequired where that is what happened.
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
		// The chain is judged below, so that a bad one can be shown.
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
		}, fmt.Errorf("shake hands with %s: %w", plain(hostport), orCause(ctx, err))
	}
	report := describe(conn.ConnectionState())
	report.Latency = time.Since(start)
	report.strangers = asked && refusesStrangers(conn, done, 3*latency)
	return report.judged(pool, serverName), nil
}

// Judge judges the certificates of a report anew, by other roots and for
// another name than it was made with. Both are as in TLS, but that a name is
// needed.
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
		r.Problem = strings.Trim("the server asks for a client certificate; "+r.Problem, "; ")
	}
	r.Trusted = r.Kind == ""
	return r
}

// SystemAnd returns the system's roots and the certificates in PEM as trusted roots.
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

// Pool returns the certificates in PEM as trusted roots; nil for nil, which x509 takes as the system's.
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

// Alerts of RFC 8446, section 6.
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
		return NotTLS, "something answers there, but in plain HTTP, not in TLS"
	case errors.As(err, &header):
		return NotTLS, "something answers there, but not in TLS"
	case needsClientCert(alert, asked):
		return ClientCertRequired, "the server asks for a client certificate"
	case alert == unrecognizedName.Error():
		return NameMismatch, "the server has no certificate for that name"
	case alert != "":
		return Other, "the server ended the handshake: " + plain(alert)
	case errors.Is(err, io.EOF):
		return Other, "the connection was closed in the middle of the handshake"
	}
	return Other, ""
}

// alertText returns the text of the TLS alert that the other end sent, or "". Outside of QUIC the tls package keeps the
// type of its alerts to itself, but they have the texts of tls.AlertError.
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

// refusesStrangers waits a moment for the alert by which a TLS 1.3 server turns away a client that showed no
// certificate: it comes a round trip after the client has called the handshake done. A session ticket in its place says
// that the server calls it done, too, and ends the wait.
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

// ticket is a cache of TLS sessions that keeps none. It ends a read that waits
// for what follows the handshake when a session ticket comes: servers send it
// once they have judged the client's certificate.
type ticket struct {
	conn    net.Conn
	awaited bool // used by one goroutine alone, as tls.Conn calls Put from Read
}

func (t *ticket) Get(string) (*tls.ClientSessionState, bool) { return nil, false }

func (t *ticket) Put(string, *tls.ClientSessionState) {
	if t.awaited {
		_ = t.conn.SetReadDeadline(time.Unix(1, 0)) // long ago
	}
}
