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

// quotaID matches ids that Kubernetes accepts, which Renku does not check: the id becomes the
// name of a ResourceQuota and a PriorityClass (renku-data-services
// components/renku_data_services/crc: minLength 5, column of 63).
var quotaID = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

func checkQuotaID(v string) error {
	if len(v) < 5 || len(v) > 63 || !quotaID.MatchString(v) || strings.HasPrefix(v, "system-") {
		return fmt.Errorf("%q is no quota id: 5 to 63 lower-case letters, digits, - and . and not system-…", v)
	}
	return nil
}

func prerequisites() steps.Step {
	return steps.Step{
		Name: "prerequisites", Title: "Remote prerequisites",
		Why: "What sessions need on the remote cluster. carrick makes the namespace, the network policies and the " +
			"priority classes; the rest is yours, and only looked at.",
		Ask:   append(questions(), sizeQuestions()...),
		Facts: prerequisiteFacts(),
		Actions: []steps.Action{
			{
				Name: "namespace", Title: "Make the namespace of the sessions", On: steps.Remote,
				Doer: action.Manifest{File: "namespace.yaml"},
			},
			{
				Name: "network-policies", Title: "Fence the sessions in", On: steps.Remote, When: isolated,
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
			Key: "pools.quotas", Title: "Quota ids of the resource pools", Kind: steps.Name, Many: true, On: steps.Remote,
			Check:   checkQuotaID,
			Adopt:   adoptQuotas,
			Help:    "One a pool that will have a quota: it names the pool's PriorityClass and ResourceQuota.",
			Default: func(e steps.Env) (any, string) { return []string{e.Link + "-pool"}, "the link's name" },
		},
		{
			Key: "network.isolate", Title: "Fence sessions in with network policies", Kind: steps.YesNo, On: steps.Remote,
			Adopt:   adoptIsolation,
			Help:    "Sessions run other people's code. Without policies it can reach everything in the cluster.",
			Default: steps.Fixed(true, "recommended"),
		},
		{
			Key: "network.dns-namespace", Title: "Namespace of the cluster's DNS", Kind: steps.Namespace, On: steps.Remote,
			When:    isolated,
			Help:    "Sessions may ask DNS there and nowhere else in the cluster.",
			Default: steps.FromFact("dns-namespace", "the pods that serve DNS"),
		},
		{
			Key: "sessions.storage-class", Title: "StorageClass of the sessions", Kind: steps.Name, Opt: true, On: steps.Remote,
			Adopt:   registeredClass("session_storage_class"),
			Help:    "For the working directories. Empty: the cluster's default.",
			Default: steps.FromFact("default-storage-class", "the cluster's default class"),
		},
		{
			Key: "sessions.ingress-class", Title: "IngressClass of the sessions", Kind: steps.Name, Opt: true, On: steps.Remote,
			Adopt:   registeredClass("session_ingress_class_name"),
			Help:    "The controller that serves the sessions' host name. Empty: the cluster's default.",
			Default: steps.FromFact("default-ingress-class", "the cluster's default class"),
		},
		{
			Key: "sessions.host", Title: "Host name of the sessions", Kind: steps.HostName, Opt: true, On: steps.Remote,
			Check: checkSessionHost,
			Adopt: registeredAddress("session_host"),
			Help: "Not Renku's own domain. Browsers open sessions there, and Renku's login must let it in: Helm value " +
				"notebooks.oidc.extraRedirectUris.",
			Default: fromPeer("redirect-host", "Renku's login lets it in already"),
		},
		{
			Key: "sessions.tls-secret", Title: "TLS Secret of that host name", Kind: steps.Name, Opt: true, On: steps.Remote,
			Adopt: asRegistered(fieldTLS),
			Help:  "In the sessions' namespace. Empty: the ingress controller's default certificate is used.",
		},
		{
			Key: "sessions.service-account", Title: "ServiceAccount that sessions run as", Kind: steps.Name, Opt: true,
			On:    steps.Remote,
			Adopt: asRegistered("service_account_name"),
			Help:  "Only where the cluster asks for one (OpenShift: one with the SCC nonroot-v2). It must exist.",
		},
	}
}

func sizeQuestions() []steps.Question {
	return []steps.Question{
		{
			Key: "nodes.labels", Title: "Labels of the nodes for sessions", Kind: steps.Label, Many: true, Opt: true,
			On:      steps.Remote,
			Help:    "Sessions are put only on nodes with all of these. As in Renku's notebooks.sessionAffinity.",
			Default: steps.FromFact("purpose-label", "a node carries it"),
		},
		{
			Key: "nodes.tolerations", Title: "Taint keys that sessions tolerate", Kind: steps.Text, Many: true, Opt: true,
			On:   steps.Remote,
			Help: "As in Renku's notebooks.sessionTolerations and in the resource classes.",
		},
		{
			Key: "nodes.arch", Title: "Platform of the sessions", Kind: steps.Pick, On: steps.Remote,
			Adopt:   adoptArch,
			Of:      []steps.Choice{{Value: "amd64", Title: "linux/amd64"}, {Value: "arm64", Title: "linux/arm64"}},
			Help:    "The platform of the resource pool.",
			Default: steps.Fixed("amd64", "Renku's default"),
		},
		{
			Key: "class.cpu", Title: "CPUs of the biggest resource class", Kind: steps.Quantity, On: steps.Remote,
			Help:    "It must fit on one node, with about 100m beside it.",
			Default: steps.Fixed("2", "a common class"),
		},
		{
			Key: "class.memory", Title: "Memory of the biggest resource class", Kind: steps.Quantity, On: steps.Remote,
			Help:    "Renku counts classes in GiB and quotas in GB.",
			Default: steps.Fixed("4Gi", "a common class"),
		},
		{
			Key: "class.gpu", Title: "GPUs of the biggest resource class", Kind: steps.Number, On: steps.Remote,
			Help:    "NVIDIA only: nvidia.com/gpu.",
			Default: steps.Fixed(0, "a common class"),
		},
	}
}
