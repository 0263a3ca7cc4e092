package liqo

import (
	"context"

	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

// These are the kinds of credentials.
const (
	byCertificate    = "certificate"
	byServiceAccount = "service-account"
)

// usualBinding is the RoleBinding's name in the published guide, and the name that Liqo deletes
// when a tenant is drained.
const usualBinding = "liqo-binding-liqo-remote-controlplane"

func credentials() steps.Step {
	return steps.Step{
		Name: "credentials", Title: "Credentials",
		Why: "Liqo on the consumer signs in at the provider. The consumer makes the key and asks, the provider signs: the " +
			"key never crosses over. What it may do there is proved before it is used.",
		Ask:   credentialQuestions(),
		Facts: credentialFacts(),
		Actions: []steps.Action{
			{
				Name: "credential-key", Title: "Make the consumer's key and its certificate request", On: steps.Local,
				When: certified, Needs: []string{"tenant-namespace"},
				Doer: credentialKey{action.Mint{
					File: "credential-key.yaml", Keys: []string{keyField, requestField}, Make: newCredentialKey,
					Values: action.Values{"name": keySecretName},
				}},
			},
			{
				Name: "certificate-request", Title: "Have the provider sign it", On: steps.Remote, When: certified,
				Needs: []string{"request-sound"},
				Doer: certificateRequest{action.Manifest{File: "certificate-request.yaml", Values: action.Values{
					"name":    requestName,
					"request": encodedRequest,
				}}},
			},
			{
				Name: "service-account", Title: "Make the consumer's ServiceAccount", On: steps.Remote, When: tokened,
				Needs: []string{"tenant-namespace"},
				Doer: action.Manifest{File: "service-account.yaml", Values: action.Values{
					"name": func(_ context.Context, e steps.Env) (any, error) { return consumerAccount(e.Peer) },
				}},
			},
			{
				Name: "role-binding", Title: "Let the consumer write its requests", On: steps.Remote, When: servesConsumer,
				Needs: []string{"tenant-namespace", "controlplane-role"},
				Doer: action.Manifest{File: "role-binding.yaml", Values: action.Values{
					"name":     bindingName,
					"subjects": subjects,
				}},
			},
		},
		Checks: credentialChecks(),
	}
}

func credentialQuestions() []steps.Question {
	return []steps.Question{
		{
			Key: "auth.kind", Title: "What the consumer signs in with", Kind: steps.Pick,
			Of: []steps.Choice{
				{Value: byCertificate, Title: "a client certificate that the provider's cluster signs"},
				{Value: byServiceAccount, Title: "a ServiceAccount's token, where the cluster signs no certificates (EKS)"},
			},
			Help: "A certificate ends after a year or so and is not renewed by itself; a token doesn't end, and crosses " +
				"over to the consumer.",
			Default: kindAsItExists,
		},
		{
			Key: "provider.server", Title: "Address of the provider's API server, as the consumer shall call it",
			Kind: steps.URL, On: steps.Remote,
			Adopt:   adoptServer,
			Help:    "Reachable from the consumer's pods, not only from here; in the server's certificate.",
			Default: steps.FromFact(check.ServerFact, "your context"),
		},
		{
			Key: "provider.ca", Title: "CA that the consumer shall trust for that address", Kind: steps.Pick, On: steps.Remote,
			Adopt: adoptCA,
			Of: []steps.Choice{
				{
					Value: "cluster",
					Title: "the cluster's own (ConfigMap kube-root-ca.crt): right where the API server itself answers",
				},
				{Value: "context", Title: "the CA of your own context: right where something else ends TLS"},
			},
			Help:    "The consumer trusts this CA alone, not the system's.",
			Default: steps.Fixed("cluster", "right for most clusters"),
		},
	}
}

func credentialFacts() []steps.Fact {
	return []steps.Fact{
		{
			Name: "control-plane", Title: "the consumer's credential as it stands", On: steps.Local, Shared: true,
			Learn: controlPlaneFact,
		},
		{Name: "csr", Title: "the consumer's certificate request", On: steps.Local, Shared: true, Learn: requestFact},
		{
			Name: "credential-user", Title: "who the consumer signs in as", On: steps.Local, Shared: true,
			Learn: credentialUser,
		},
		{
			Name: "kubeconfig", Title: "the kubeconfig for the provider", On: steps.Local, Secret: true,
			Learn: consumersKubeconfig,
		},
		{Name: "controlplane-role", Title: "the ClusterRole for consumers", On: steps.Remote, Learn: controlPlaneRole},
		{Name: "certificate", Title: "the consumer's certificate", On: steps.Remote, Shared: true, Learn: issuedCertificate},
		{
			Name: "token", Title: "the ServiceAccount's token", On: steps.Remote, Secret: true, Shared: true,
			Learn: accountToken,
		},
		{Name: "client-ca", Title: "the CA of client certificates", On: steps.Remote, Shared: true, Learn: clientCA},
		{Name: "ca", Title: "the CA of the provider's API server", On: steps.Remote, Shared: true, Learn: providerCA},
	}
}

func certified(e steps.Env) bool { return e.Answers.Text("auth.kind") == byCertificate }

func tokened(e steps.Env) bool { return e.Answers.Text("auth.kind") == byServiceAccount }

// kindAsItExists returns service-account if the credential in use is a ServiceAccount's token.
func kindAsItExists(e steps.Env) (any, string) {
	if user := e.Own.FieldText("control-plane", "user"); isServiceAccount(user) {
		return byServiceAccount, "as it stands"
	}
	return byCertificate, "the published guide"
}
