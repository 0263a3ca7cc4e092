package liqo

import (
	"context"

	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

// These are the values of the answer auth.kind.
const (
	byCertificate    = "certificate"
	byServiceAccount = "service-account"
)

// usualBinding is the name of the RoleBinding in the published guide. Liqo deletes the RoleBinding with this name when
// a Tenant is drained.
const usualBinding = "liqo-binding-liqo-remote-controlplane"

func credentials() steps.Step {
	return steps.Step{
		Name: "credentials", Title: "Credentials",
		Map: steps.MapRow{Local: "kubeconfig, key", Remote: "certificate or token", Arrow: steps.Local},
		Why: "The consumer creates a key and requests a certificate, and the provider signs it. carrick tests the " +
			"credential before Liqo uses it.",
		Ask:   credentialQuestions(),
		Facts: credentialFacts(),
		Actions: []steps.Action{
			{
				Name: "credential-key", Title: "Create the consumer's key and certificate request", On: steps.Local,
				When: certified, Needs: []string{"tenant-namespace"},
				Doer: credentialKey{action.Mint{
					File: "credential-key.yaml", Keys: []string{keyField, requestField}, Make: newCredentialKey,
					Values: action.Values{"name": keySecretName},
				}},
			},
			{
				Name: "certificate-request", Title: "Create and approve the certificate request", On: steps.Remote, When: certified,
				Needs: []string{"request-valid"},
				Doer: certificateRequest{action.Manifest{File: "certificate-request.yaml", Values: action.Values{
					"name":    requestName,
					"request": encodedRequest,
				}}},
			},
			{
				Name: "service-account", Title: "Create the consumer's ServiceAccount", On: steps.Remote, When: tokened,
				Needs: []string{"tenant-namespace"},
				Doer: action.Manifest{File: "service-account.yaml", Values: action.Values{
					"name": func(_ context.Context, e steps.Env) (any, error) { return consumerAccount(e.Peer) },
				}},
			},
			{
				Name: "role-binding", Title: "Bind the consumer to Liqo's ClusterRole", On: steps.Remote, When: servesConsumer,
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
			Key: "auth.kind", Title: "Credential type", Kind: steps.Pick,
			Of: []steps.Choice{
				{Value: byCertificate, Title: "a client certificate signed by the provider's cluster"},
				{Value: byServiceAccount, Title: "a ServiceAccount token, for clusters that sign no certificates (EKS)"},
			},
			Help: "A certificate expires after about a year and is not renewed automatically. A token never expires and is " +
				"copied to the consumer.",
			Default: kindAsItExists,
		},
		{
			Key: "provider.server", Title: "URL of the provider's API server for the consumer",
			Kind: steps.URL, On: steps.Remote,
			Adopt: adoptServer,
			Help: "The consumer's pods must reach it, and the server's certificate must contain its host name. Example: " +
				"https://203.0.113.7:6443.",
			Default: steps.FromFact(check.ServerFact, "from your kubeconfig context"),
		},
		{
			Key: "provider.ca", Title: "CA of the provider's API server", Kind: steps.Pick, On: steps.Remote,
			Adopt: adoptCA,
			Of: []steps.Choice{
				{
					Value: "cluster",
					Title: "the cluster CA (ConfigMap kube-root-ca.crt), if the API server itself terminates TLS",
				},
				{Value: "context", Title: "the CA of your kubeconfig context, if a proxy or load balancer terminates TLS"},
			},
			Help:    "The consumer trusts only this CA, not the system CAs.",
			Default: steps.Fixed("cluster", "default"),
		},
	}
}

func credentialFacts() []steps.Fact {
	return []steps.Fact{
		{
			Name: "control-plane", Title: "the consumer's existing credential", On: steps.Local, Shared: true,
			Learn: controlPlaneFact,
		},
		{Name: "csr", Title: "the consumer's certificate request", On: steps.Local, Shared: true, Learn: requestFact},
		{
			Name: "credential-user", Title: "the user that the consumer authenticates as", On: steps.Local, Shared: true,
			Learn: credentialUser,
		},
		{
			Name: "kubeconfig", Title: "the kubeconfig for the provider", On: steps.Local, Secret: true,
			Learn: consumersKubeconfig,
		},
		{Name: "controlplane-role", Title: "the ClusterRole for consumers", On: steps.Remote, Learn: controlPlaneRole},
		{Name: "certificate", Title: "the consumer's certificate", On: steps.Remote, Shared: true, Learn: issuedCertificate},
		{
			Name: "token", Title: "the ServiceAccount token", On: steps.Remote, Secret: true, Shared: true,
			Learn: accountToken,
		},
		{Name: "client-ca", Title: "the CA for client certificates", On: steps.Remote, Shared: true, Learn: clientCA},
		{Name: "ca", Title: "the CA of the provider's API server", On: steps.Remote, Shared: true, Learn: providerCA},
	}
}

func certified(e steps.Env) bool { return e.Answers.Text("auth.kind") == byCertificate }

func tokened(e steps.Env) bool { return e.Answers.Text("auth.kind") == byServiceAccount }

func kindAsItExists(e steps.Env) (any, string) {
	if user := e.Own.FieldText("control-plane", "user"); isServiceAccount(user) {
		return byServiceAccount, "from the existing credential"
	}
	return byCertificate, "from the published guide"
}
