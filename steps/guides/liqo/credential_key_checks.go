package liqo

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/check"
)

func credentialKeyHeld(ctx context.Context, e steps.Env) steps.Result {
	if foreign(e.Own) {
		return foreignCredential(e.Own)
	}
	name, err := credentialSecret(e)
	if err != nil {
		return steps.Errored(err)
	}
	what := "Secret " + tenantNamespace(e) + "/" + name
	s, err := e.Cluster.Secret(ctx, tenantNamespace(e), name, keyField, requestField)
	if err != nil {
		return check.Missing(err, what+" with the consumer's key", "")
	}
	fix, err := anotherCertificate(e)
	if err != nil {
		return steps.Errored(err)
	}
	for _, field := range []string{keyField, requestField} {
		if s.Data[field].IsZero() {
			return steps.Failed(fmt.Sprintf("%s has no %s", what, field), fix)
		}
	}
	request, err := parseRequest(s.Data[requestField].Reveal()) // the request is not confidential
	if err != nil {
		return steps.Failed(fmt.Sprintf("%s of %s: %s", requestField, what, err), fix)
	}
	err = probe.KeyMatches(&x509.Certificate{PublicKey: request.PublicKey}, []byte(s.Data[keyField].Reveal()))
	if errors.Is(err, probe.ErrKeyMismatch) {
		return steps.Failed(fmt.Sprintf("%s of %s does not match the certificate request", keyField, what), fix)
	}
	if err != nil {
		return steps.Failed(fmt.Sprintf("%s of %s: %s", keyField, what, err), fix)
	}
	return steps.Passed("%s, for %s", what, request.Subject.CommonName)
}

func accountTokened(ctx context.Context, e steps.Env) steps.Result {
	name, err := consumerAccount(e.Peer)
	if err != nil {
		return steps.Errored(err)
	}
	ns := tenantNamespace(e)
	_, err = e.Cluster.Get(ctx, check.ServiceAccounts, ns, name)
	if err != nil {
		return check.Missing(err, "ServiceAccount "+ns+"/"+name, "")
	}
	s, err := e.Cluster.Secret(ctx, ns, name+"-token")
	if apierrors.IsNotFound(err) {
		return steps.Undone("Secret " + ns + "/" + name + "-token does not exist")
	}
	if err != nil {
		return steps.Errored(err)
	}
	return check.TokenFilled(e, s, "token")
}
