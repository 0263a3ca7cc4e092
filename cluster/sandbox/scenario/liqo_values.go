package scenario

import (
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"time"

	"carrick/cluster/sandbox/pki"
	"carrick/cluster/sandbox/world"
)

// webhookRunsOut is the remaining validity of the webhook certificate with the fault webhook-cert-expiring. Normally
// Liqo's certificate is valid for a year.
const webhookRunsOut = 3 * 24 * time.Hour

// webhookNames lists the webhooks' DNS names.
var webhookNames = []string{"liqo-webhook.liqo.svc", "liqo-webhook.liqo.svc.cluster.local"}

// liqoValues returns the values for ${…} in the scenario's YAML. They contain the webhook certificate and the key pair
// of authentication-keys, which Liqo creates on installation. They also contain a WireGuard key pair for each side,
// which users create according to the page.
func liqoValues() (world.Values, error) {
	authority, err := pki.NewAuthority("liqo-webhook")
	if err != nil {
		return nil, err
	}
	healthy, err1 := authority.Server(webhookNames...)
	expiring, err2 := authority.ServerUntil(time.Now().Add(webhookRunsOut), webhookNames...)
	public, private, err3 := ed25519.GenerateKey(nil)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	closed, err1 := x509.MarshalPKCS8PrivateKey(private)
	open, err2 := x509.MarshalPKIXPublicKey(public)
	values := world.Values{
		"liqo.webhook.ca":             string(authority.Cert),
		"liqo.webhook.crt":            string(healthy.Cert),
		"liqo.webhook.key":            string(healthy.Key),
		"liqo.webhook.expiring.crt":   string(expiring.Cert),
		"liqo.webhook.expiring.key":   string(expiring.Key),
		"liqo.authentication.private": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: closed})),
		"liqo.authentication.public":  string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: open})),
	}
	for _, side := range []string{local, remote} {
		key, err := ecdh.X25519().GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		values["liqo.page."+side+".private"] = base64.StdEncoding.EncodeToString(key.Bytes())
		values["liqo.page."+side+".public"] = base64.StdEncoding.EncodeToString(key.PublicKey().Bytes())
	}
	return values, errors.Join(err1, err2)
}
