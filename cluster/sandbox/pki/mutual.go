package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// Mutual returns a server's TLS configuration that accepts only one client. It has a serving certificate for names, and
// requires a client certificate for the user client. The authority must have signed both.
func (a *Authority) Mutual(client string, names ...string) (*tls.Config, error) {
	pair, err := a.Server(names...)
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, err
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(a.Cert) {
		return nil, errors.New("no certificate of the authority")
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    clients,
		VerifyConnection: func(state tls.ConnectionState) error {
			if got := state.PeerCertificates[0].Subject.CommonName; got != client {
				return fmt.Errorf("%s is not %s", got, client)
			}
			return nil
		},
	}, nil
}
