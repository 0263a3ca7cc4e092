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
		Name: "credential-key", Title: "the consumer has a key of its own, and a request for that key", On: steps.Local,
		When: certified, FixedBy: "credential-key", Needs: []string{"tenant-namespace"},
		Why:        "the key is made where it is used and never crosses over; deleting it is how the credential is renewed",
		References: []string{page},
		Run:        credentialKeyHeld,
	}
}

// providersCredentialChecks check the credential's objects on the provider.
func providersCredentialChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "controlplane-role", Title: "Liqo's ClusterRole for consumers is there and whole", On: steps.Remote,
			Needs: []string{"signed-in"},
			Why: "it is all that the consumer may do at the provider; its name has a prefix that admins may change, so " +
				"it is found by its label",
			References: []string{roleSource},
			Run:        consumersRole,
		},
		{
			Name: "request-sound", Title: "the consumer's request asks for what it may have", On: steps.Remote, When: certified,
			Needs: []string{"tenant-namespace", "peer/credential-key"},
			Why: "whoever approves a request gives the rights of all names in it: system:masters is an admin, the " +
				"consumer's cluster id is the group of Liqo's virtual kubelets",
			References: []string{page, csrSource, signersSource},
			Run:        requestSound,
		},
		{
			Name: "signs-certificates", Title: "the provider's cluster signs client certificates", On: steps.Remote,
			Needs: []string{"signed-in"},
			Why: "EKS signs none. Liqo also requests a certificate for each ResourceSlice, and denies the slice if " +
				"none is signed within 30 seconds.",
			References: []string{signersSource, "liqotech/liqo#3153"},
			Run:        signsCertificates, Timeout: 30 * time.Second,
		},
		{
			Name: "account-token", Title: "the consumer's ServiceAccount has a token", On: steps.Remote, When: tokened,
			FixedBy: "service-account", Needs: []string{"tenant-namespace"},
			Why:        "Kubernetes puts it into a Secret, and deletes that Secret where the ServiceAccount is not there",
			References: []string{"https://kubernetes.io/docs/concepts/configuration/secret/#serviceaccount-token-secrets"},
			Run:        accountTokened, Timeout: 30 * time.Second,
		},
		{
			Name: "certificate-issued", Title: "the consumer's certificate is issued", On: steps.Remote, When: certified,
			FixedBy: "certificate-request", Needs: []string{"request-sound"},
			Why:        "a request is approved by somebody and then signed by the cluster, which removes it an hour later",
			References: []string{page, signersSource},
			Run:        certificateIssued, Timeout: 30 * time.Second,
		},
		{
			Name: "role-binding", Title: "the consumer is bound to that ClusterRole in its tenant namespace", On: steps.Remote,
			When: servesConsumer, FixedBy: "role-binding", Needs: []string{"controlplane-role", "tenant-namespace"},
			Why: "the name in the binding has to be the certificate's common name to the letter: else there is a 403 " +
				"in the log of the consumer's replicator and nowhere else",
			References: []string{page, roleSource},
			Run:        roleBound,
		},
	}
}

// consumersCredentialChecks check the credential on the consumer.
func consumersCredentialChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "kubeconfig-whole", Title: "the kubeconfig for the provider is whole and needs nothing but itself",
			On: steps.Local, Needs: []string{"tenant-namespace"},
			Why: "files and login plugins of an admin's machine are not in Liqo's pods; what is wrong with it stands " +
				"in the replicator's log alone",
			References: []string{replicatorCode},
			Run:        kubeconfigWhole,
		},
		{
			Name:  "kubeconfig-server",
			Title: "the kubeconfig's server can be called by that address and proves itself to the CA in it", On: steps.Local,
			From: "this machine", Needs: []string{"kubeconfig-whole"},
			Why: "Liqo trusts that CA alone. localhost and names such as kubernetes.default mean something else " +
				"in its pods",
			References: []string{contextSource, "liqotech/liqo#1620", "liqotech/liqo#2392", "liqotech/liqo#2925"},
			Run:        kubeconfigServer,
		},
		{
			Name:  "certificate-sound",
			Title: "the consumer's certificate is one for clients, of the right groups, and of the provider's authority",
			On:    steps.Local, When: certified, Needs: []string{"kubeconfig-whole"},
			Why: "a serving certificate is refused, one of system:masters is an admin's, and one of another cluster's " +
				"authority is nobody's",
			References: []string{csrSource, signersSource},
			Run:        certificateSound,
		},
		{
			Name: "certificate-lasts", Title: "the consumer's certificate lasts for another month", On: steps.Local,
			When: certified, Needs: []string{"kubeconfig-whole"},
			Why:        "Liqo renews certificates of its own handshake only: when this one ends, the peering stops",
			References: []string{renewerSource},
			Run:        clientCertificateLasts,
		},
		{
			Name: "credential-rights", Title: "the new kubeconfig may write all that Liqo copies", On: steps.Local,
			When: servesConsumer, From: withCredential, Needs: []string{"kubeconfig-server", "peer/role-binding"},
			Why:        "Liqo says of a right that is missing in its log alone. It is asked here as the consumer will ask",
			References: []string{roleSource, replicatorCode},
			Run:        credentialPermissions,
		},
		{
			Name: "credential-least", Title: "the new kubeconfig may do nothing beyond what Liqo copies", On: steps.Local,
			When: servesConsumer, From: withCredential, Needs: []string{"credential-rights"},
			Why:        "this credential leaves the provider: whoever gets hold of it gets all that it may do",
			References: []string{roleSource},
			Run:        credentialLeast,
		},
	}
}
