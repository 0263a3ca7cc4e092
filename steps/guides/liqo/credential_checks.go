package liqo

import (
	"slices"
	"time"

	"carrick/steps"
)

// withCredential is the value of Check.From for checks that send requests to the provider's API server with the new
// kubeconfig instead of the admin's.
const withCredential = "the new kubeconfig"

// Upstream sources that the credential checks cite.
const (
	roleSource     = "liqotech/liqo: deployments/liqo/files/liqo-remote-controlplane-ClusterRole.yaml"
	csrSource      = "liqotech/liqo: pkg/liqo-controller-manager/authentication/csr.go"
	signersSource  = "https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/"
	renewerSource  = "liqotech/liqo: pkg/liqo-controller-manager/authentication/localrenewer-controller"
	contextSource  = "liqotech/liqo: pkg/utils/apiserver/address.go"
	replicatorCode = "liqotech/liqo: internal/crdReplicator/crdReplicator-operator.go"
)

func credentialChecks() []steps.Check {
	return slices.Concat([]steps.Check{credentialKeyCheck()}, providersCredentialChecks(), consumersCredentialChecks())
}

func credentialKeyCheck() steps.Check {
	return steps.Check{
		Name: "credential-key", Title: "The consumer has its own key and a matching request", On: steps.Local,
		When: certified, FixedBy: "credential-key", Needs: []string{"tenant-namespace"},
		Why:        "The key is created on the consumer and never leaves it; to renew the credential, delete its Secret.",
		References: []string{page},
		Run:        credentialKeyHeld,
	}
}

// providersCredentialChecks returns the checks of the credential's objects on the provider.
func providersCredentialChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "controlplane-role", Title: "Liqo's ClusterRole for consumers is complete", On: steps.Remote,
			Needs: []string{"signed-in"},
			Why: "This ClusterRole grants everything that the consumer can do on the provider; carrick finds it by label " +
				"because its name can have a prefix.",
			References: []string{roleSource},
			Run:        consumersRole,
		},
		{
			Name: "request-valid", Title: "The certificate request has the expected contents", On: steps.Remote, When: certified,
			Needs: []string{"tenant-namespace", "peer/credential-key"},
			Why: "Approval grants the request's user and groups, such as system:masters (cluster admin) or the " +
				"consumer's cluster id (Liqo's virtual kubelets).",
			References: []string{page, csrSource, signersSource},
			Run:        requestSound,
		},
		{
			Name: "signs-certificates", Title: "The provider's cluster signs client certificates", On: steps.Remote,
			Needs: []string{"signed-in"},
			Why: "EKS signs no client certificates, and Liqo denies a ResourceSlice whose certificate is not signed " +
				"within 30 seconds.",
			References: []string{signersSource, "liqotech/liqo#3153"},
			Run:        signsCertificates, Timeout: 30 * time.Second,
		},
		{
			Name: "account-token", Title: "The consumer's ServiceAccount has a token", On: steps.Remote, When: tokened,
			FixedBy: "service-account", Needs: []string{"tenant-namespace"},
			Why: "Kubernetes adds a token to the Secret only if the ServiceAccount exists; otherwise it deletes " +
				"the Secret.",
			References: []string{"https://kubernetes.io/docs/concepts/configuration/secret/#serviceaccount-token-secrets"},
			Run:        accountTokened, Timeout: 30 * time.Second,
		},
		{
			Name: "certificate-issued", Title: "The consumer's certificate is issued", On: steps.Remote, When: certified,
			FixedBy: "certificate-request", Needs: []string{"request-valid"},
			Why:        "Kubernetes signs only approved requests, and deletes them an hour after signing.",
			References: []string{page, signersSource},
			Run:        certificateIssued, Timeout: 30 * time.Second,
		},
		{
			Name: "role-binding", Title: "A RoleBinding grants the consumer Liqo's ClusterRole", On: steps.Remote,
			When: servesConsumer, FixedBy: "role-binding", Needs: []string{"controlplane-role", "tenant-namespace"},
			Why: "If the user in the RoleBinding differs from the certificate's common name, the consumer's replicator " +
				"gets a 403 and only logs it.",
			References: []string{page, roleSource},
			Run:        roleBound,
		},
	}
}

// consumersCredentialChecks returns the checks of the credential on the consumer.
func consumersCredentialChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "kubeconfig-self-contained", Title: "The kubeconfig for the provider is self-contained",
			On: steps.Local, Needs: []string{"tenant-namespace"},
			Why:        "Liqo's pods cannot use files or login plugins of your machine, and the replicator only logs the error.",
			References: []string{replicatorCode},
			Run:        kubeconfigWhole,
		},
		{
			Name:  "kubeconfig-server",
			Title: "The kubeconfig's server address and CA are correct", On: steps.Local,
			From: "this machine", Needs: []string{"kubeconfig-self-contained"},
			Why: "Liqo trusts only the kubeconfig's CA, and its pods reach other servers at localhost or " +
				"kubernetes.default.",
			References: []string{contextSource, "liqotech/liqo#1620", "liqotech/liqo#2392", "liqotech/liqo#2925"},
			Run:        kubeconfigServer,
		},
		{
			Name:  "certificate-valid",
			Title: "The certificate has the right usage, groups and issuer",
			On:    steps.Local, When: certified, Needs: []string{"kubeconfig-self-contained"},
			Why: "The API server rejects a serving certificate or an unknown CA, and the group system:masters would " +
				"make the consumer an admin.",
			References: []string{csrSource, signersSource},
			Run:        certificateSound,
		},
		{
			Name: "certificate-lifetime", Title: "The consumer's certificate is valid for 30 more days", On: steps.Local,
			When: certified, Needs: []string{"kubeconfig-self-contained"},
			Why:        "Liqo does not renew this certificate; when it expires, the peering stops.",
			References: []string{renewerSource},
			Run:        clientCertificateLasts,
		},
		{
			Name: "credential-rights", Title: "The new kubeconfig can write all objects Liqo replicates", On: steps.Local,
			When: servesConsumer, From: withCredential, Needs: []string{"kubeconfig-server", "peer/role-binding"},
			Why: "Liqo only logs missing permissions, so carrick tests them on the provider's API server with the " +
				"consumer's credential.",
			References: []string{roleSource, replicatorCode},
			Run:        credentialPermissions,
		},
		{
			Name: "least-privilege", Title: "The new kubeconfig grants nothing but replication", On: steps.Local,
			When: servesConsumer, From: withCredential, Needs: []string{"credential-rights"},
			Why:        "This credential is stored outside the provider, and anyone who obtains it has its permissions.",
			References: []string{roleSource},
			Run:        credentialLeast,
		},
	}
}
