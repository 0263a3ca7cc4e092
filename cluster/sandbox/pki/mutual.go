package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// Mutual returns the TLS configuration of a server with a certificate for names. The server accepts only client
// certificates of this CA whose common name is client.
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
		return nil, errors.New("the CA file contains no certificate")
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    clients,
		VerifyConnection: func(state tls.ConnectionState) error {
			if got := state.PeerCertificates[0].Subject.CommonName; got != client {
				return fmt.Errorf("the client certificate's common name is %s, not %s", got, client)
			}
			return nil
		},
	}, nil
}
