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
	Chain    []*x509.Certificate // as sent by the server; not empty if there is no error
	Trusted  bool                // the certificate is trusted by the given roots and valid for the server's name
	Problem  string              // all problems as text; "" if trusted
	Kind     Problem             // kind of the first problem; "" if trusted
	Names    []string            // DNS names and IP addresses that the certificate is valid for
	NotAfter time.Time           // expiry of the server's certificate
	Version  string              // "TLS 1.3"
	ALPN     string              // "h2", "http/1.1", or "" if the server chose none
	Latency  time.Duration       // duration of the handshake, without the connect

	strangers bool // the server rejects clients without a certificate
}

// TLS performs a TLS handshake with hostport and verifies the server's certificate. It sends no data. The certificate
// must be valid for serverName; "" means the host in hostport. roots are CAs in PEM; nil means the system's roots. If
// roots is not nil, it must contain a certificate.
//
// If the handshake fails, for example because the connection is refused or the server does not use TLS, TLS returns an
// error. The report then contains only Kind and Problem.
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
		// carrick verifies the chain itself below, so that it can report an invalid one.
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

// Judge verifies the certificates of a report with other roots and for another name. serverName and roots are as in
// TLS, but serverName is required.
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

// SystemAnd returns a pool of the system's roots and the certificates in PEM.
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

// Pool returns a pool of the certificates in PEM. For nil it returns nil, which means the system's roots in package
// x509.
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

// alertText returns the text of the TLS alert in err that the remote side sent, or "" if there is none. Package tls
// does not export the type of its alerts (except for QUIC), but they have the same texts as tls.AlertError.
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

// refusesStrangers reports whether a TLS 1.3 server rejects clients without a certificate. The server's alert arrives
// one round trip after the client has completed the handshake, so refusesStrangers waits briefly for it. A session
// ticket ends the wait, because the server sends it after a successful handshake.
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

// ticket is a TLS session cache that stores nothing. The arrival of a session ticket ends the read that waits for an
// alert. A server sends the ticket only after it has accepted the client's certificate, or the lack of one.
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
