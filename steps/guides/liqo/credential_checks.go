package liqo

import (
	"slices"
	"time"

	"carrick/steps"
)

// withCredential is the vantage point of checks of the new credential: requests to the
// provider's API server with the kubeconfig under test and without the admin's permissions.
const withCredential = "the new kubeconfig"

// These are the upstream sources of the rules that these checks apply.
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
			Why: "This role is all that the consumer is allowed to do on the provider; carrick finds it by label because its " +
				"name can have a prefix.",
			References: []string{roleSource},
			Run:        consumersRole,
		},
		{
			Name: "request-valid", Title: "The certificate request is the expected one", On: steps.Remote, When: certified,
			Needs: []string{"tenant-namespace", "peer/credential-key"},
			Why: "Approval grants all names in the request: system:masters is admin, and the consumer's cluster id is " +
				"the group of Liqo's virtual kubelets.",
			References: []string{page, csrSource, signersSource},
			Run:        requestSound,
		},
		{
			Name: "signs-certificates", Title: "The provider's cluster signs client certificates", On: steps.Remote,
			Needs:      []string{"signed-in"},
			Why:        "EKS signs none, and Liqo denies a ResourceSlice whose certificate is not signed within 30 seconds.",
			References: []string{signersSource, "liqotech/liqo#3153"},
			Run:        signsCertificates, Timeout: 30 * time.Second,
		},
		{
			Name: "account-token", Title: "The consumer's ServiceAccount has a token", On: steps.Remote, When: tokened,
			FixedBy: "service-account", Needs: []string{"tenant-namespace"},
			Why:        "Kubernetes fills the token Secret only for an existing ServiceAccount, and otherwise deletes it.",
			References: []string{"https://kubernetes.io/docs/concepts/configuration/secret/#serviceaccount-token-secrets"},
			Run:        accountTokened, Timeout: 30 * time.Second,
		},
		{
			Name: "certificate-issued", Title: "The consumer's certificate is issued", On: steps.Remote, When: certified,
			FixedBy: "certificate-request", Needs: []string{"request-valid"},
			Why:        "A request needs approval before the cluster signs it, and is removed an hour after that.",
			References: []string{page, signersSource},
			Run:        certificateIssued, Timeout: 30 * time.Second,
		},
		{
			Name: "role-binding", Title: "A RoleBinding grants the consumer Liqo's ClusterRole", On: steps.Remote,
			When: servesConsumer, FixedBy: "role-binding", Needs: []string{"controlplane-role", "tenant-namespace"},
			Why: "If the name in it differs from the certificate's common name, the only sign is a 403 in the log of " +
				"the consumer's replicator.",
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
			Why: "Liqo's pods have no files or login plugins of an admin's machine, and the replicator only logs " +
				"the problem.",
			References: []string{replicatorCode},
			Run:        kubeconfigWhole,
		},
		{
			Name:  "kubeconfig-server",
			Title: "The kubeconfig's server address and CA are correct", On: steps.Local,
			From: "this machine", Needs: []string{"kubeconfig-self-contained"},
			Why:        "Liqo trusts only that CA, and localhost or kubernetes.default mean something else in its pods.",
			References: []string{contextSource, "liqotech/liqo#1620", "liqotech/liqo#2392", "liqotech/liqo#2925"},
			Run:        kubeconfigServer,
		},
		{
			Name:  "certificate-valid",
			Title: "The certificate has the right usage, groups and issuer",
			On:    steps.Local, When: certified, Needs: []string{"kubeconfig-self-contained"},
			Why: "A serving certificate or one from another CA is refused, and one with system:masters grants " +
				"admin access.",
			References: []string{csrSource, signersSource},
			Run:        certificateSound,
		},
		{
			Name: "certificate-lifetime", Title: "The consumer's certificate is valid for 30 more days", On: steps.Local,
			When: certified, Needs: []string{"kubeconfig-self-contained"},
			Why:        "Liqo does not renew a certificate that was created this way; when it expires, the peering stops.",
			References: []string{renewerSource},
			Run:        clientCertificateLasts,
		},
		{
			Name: "credential-rights", Title: "The new kubeconfig can write all that Liqo replicates", On: steps.Local,
			When: servesConsumer, From: withCredential, Needs: []string{"kubeconfig-server", "peer/role-binding"},
			Why: "Liqo only logs missing permissions; carrick asks the provider's API server with the consumer's " +
				"credential.",
			References: []string{roleSource, replicatorCode},
			Run:        credentialPermissions,
		},
		{
			Name: "least-privilege", Title: "The new kubeconfig grants nothing but replication", On: steps.Local,
			When: servesConsumer, From: withCredential, Needs: []string{"credential-rights"},
			Why:        "This credential leaves the provider; whoever obtains it can do all that it grants.",
			References: []string{roleSource},
			Run:        credentialLeast,
		},
	}
}
