package renku

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"carrick/steps"
	"carrick/steps/action"
)

// quotaID matches valid names of Kubernetes objects, because Renku uses the quota's id to name a
// ResourceQuota and a PriorityClass. Renku itself requires only 5 to 63 characters
// (renku-data-services components/renku_data_services/crc: minLength 5, column of 63).
var quotaID = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

func checkQuotaID(v string) error {
	if len(v) < 5 || len(v) > 63 || !quotaID.MatchString(v) || strings.HasPrefix(v, "system-") {
		return fmt.Errorf(
			"%q is not a valid quota ID: use 5 to 63 lower-case letters, digits, - and ., without the prefix system-", v,
		)
	}
	return nil
}

func prerequisites() steps.Step {
	return steps.Step{
		Name: "prerequisites", Title: "Remote prerequisites",
		Map: steps.MapRow{Remote: "namespace, policies"},
		Why: "carrick creates the session namespace, the network policies and the PriorityClasses. carrick only checks the " +
			"nodes, storage, ingress and DNS that sessions need.",
		Ask:   append(questions(), sizeQuestions()...),
		Facts: prerequisiteFacts(),
		Actions: []steps.Action{
			{
				Name: "namespace", Title: "Create the session namespace", On: steps.Remote,
				Doer: action.Manifest{File: "namespace.yaml"},
			},
			{
				Name: "network-policies", Title: "Restrict session traffic with network policies", On: steps.Remote, When: isolated,
				Doer: action.Manifest{File: "network-policies.yaml", Values: action.Values{
					"dns-labels": func(_ context.Context, e steps.Env) (any, error) { return dnsLabels(e), nil },
					"dns-ports":  func(_ context.Context, e steps.Env) (any, error) { return dnsPorts(e), nil },
				}},
			},
			{
				Name: "priority-classes", Title: "Create one PriorityClass per pool", On: steps.Remote,
				Doer: action.Manifest{File: "priority-class.yaml", Each: quotaIDs},
			},
		},
		Checks: slices.Concat(namespaceChecks(), networkChecks(), poolChecks(), storageChecks(), nodeChecks(), apiChecks()),
	}
}

func quotaIDs(_ context.Context, e steps.Env) ([]any, error) {
	return anyList(e.Answers.List("pools.quotas")), nil
}

func isolated(e steps.Env) bool { return e.Answers.Bool("network.isolate") }

func questions() []steps.Question {
	return []steps.Question{
		{
			Key: "pools.quotas", Title: "Quota IDs of the resource pools", Kind: steps.Name, Many: true, On: steps.Remote,
			Check: checkQuotaID,
			Adopt: adoptQuotas,
			Help: "Enter one ID for each pool that will have a quota, such as paris-pool. The ID becomes the name of the " +
				"pool's PriorityClass and ResourceQuota.",
			Default: func(e steps.Env) (any, string) { return []string{e.Link + "-pool"}, "from the link's name" },
		},
		{
			Key: "network.isolate", Title: "Restrict session traffic with network policies", Kind: steps.YesNo, On: steps.Remote,
			Adopt:   adoptIsolation,
			Help:    "Sessions run users' code. Without policies this code can reach everything in the cluster.",
			Default: steps.Fixed(true, "recommended"),
		},
		{
			Key: "network.dns-namespace", Title: "Namespace of the cluster DNS", Kind: steps.Namespace, On: steps.Remote,
			When: isolated,
			Help: "Enter the namespace of the pods that serve DNS, such as kube-system. The network policies allow DNS " +
				"queries only to this namespace.",
			Default: steps.FromFact("dns-namespace", "from the pods that serve DNS"),
		},
		{
			Key: "sessions.storage-class", Title: "StorageClass for sessions", Kind: steps.Name, Opt: true, On: steps.Remote,
			Adopt: registeredClass("session_storage_class"),
			Help: "Enter the StorageClass for session volumes. Leave it empty to use the default StorageClass of " +
				"the cluster.",
			Default: steps.FromFact("default-storage-class", "the cluster's default"),
		},
		{
			Key: "sessions.ingress-class", Title: "IngressClass for sessions", Kind: steps.Name, Opt: true, On: steps.Remote,
			Adopt: registeredClass("session_ingress_class_name"),
			Help: "Enter an IngressClass whose controller serves the session host. Leave it empty to use the default " +
				"IngressClass of the cluster.",
			Default: steps.FromFact("default-ingress-class", "the cluster's default"),
		},
		{
			Key: "sessions.host", Title: "Session host name", Kind: steps.HostName, Opt: true, On: steps.Remote,
			Check: checkSessionHost,
			Adopt: registeredAddress("session_host"),
			Help: "Enter the host at which browsers open sessions, such as sessions.example.org. It must not be Renku's " +
				"own domain. Renku's login must allow the host (Helm value notebooks.oidc.extraRedirectUris).",
			Default: fromPeer("redirect-host", "the redirect URIs of Renku's login"),
		},
		{
			Key: "sessions.tls-secret", Title: "TLS Secret of the session host", Kind: steps.Name, Opt: true, On: steps.Remote,
			Adopt: asRegistered(fieldTLS),
			Help: "Enter a Secret in the session namespace. Leave it empty to use the ingress controller's default " +
				"certificate.",
		},
		{
			Key: "sessions.service-account", Title: "ServiceAccount for sessions", Kind: steps.Name, Opt: true,
			On:    steps.Remote,
			Adopt: asRegistered("service_account_name"),
			Help: "Enter an existing ServiceAccount only if the cluster requires one. OpenShift requires a ServiceAccount " +
				"that is allowed to use the SCC nonroot-v2.",
		},
	}
}

func sizeQuestions() []steps.Question {
	return []steps.Question{
		{
			Key: "nodes.labels", Title: "Node labels for sessions", Kind: steps.Label, Many: true, Opt: true,
			On: steps.Remote,
			Help: "Sessions run only on nodes with all of these labels. Enter the labels that Renku's " +
				"notebooks.sessionAffinity requires, such as renku.io/node-purpose=user.",
			Default: steps.FromFact("purpose-label", "the labels of a node"),
		},
		{
			Key: "nodes.tolerations", Title: "Taint keys that sessions tolerate", Kind: steps.Text, Many: true, Opt: true,
			On:   steps.Remote,
			Help: "Use the same keys as Renku's notebooks.sessionTolerations and the resource classes.",
		},
		{
			Key: "nodes.arch", Title: "Session platform", Kind: steps.Pick, On: steps.Remote,
			Adopt:   adoptArch,
			Of:      []steps.Choice{{Value: "amd64", Title: "linux/amd64"}, {Value: "arm64", Title: "linux/arm64"}},
			Help:    "Choose the platform of the resource pool.",
			Default: steps.Fixed("amd64", "Renku's default"),
		},
		{
			Key: "class.cpu", Title: "CPUs of the largest resource class", Kind: steps.Quantity, On: steps.Remote,
			Help: "Enter a quantity such as 2 or 500m. A session of this size, plus about 100m for its proxies, must fit " +
				"on one node.",
			Default: steps.Fixed("2", "carrick's default"),
		},
		{
			Key: "class.memory", Title: "Memory of the largest resource class", Kind: steps.Quantity, On: steps.Remote,
			Help:    "Enter a quantity such as 4Gi. Renku counts memory in GiB for classes but in GB for quotas.",
			Default: steps.Fixed("4Gi", "carrick's default"),
		},
		{
			Key: "class.gpu", Title: "GPUs of the largest resource class", Kind: steps.Number, On: steps.Remote,
			Help:    "Enter a number. Only NVIDIA GPUs count (nvidia.com/gpu).",
			Default: steps.Fixed(0, "carrick's default"),
		},
	}
}
