package ondemand

import (
	"slices"

	"carrick/steps"
	"carrick/steps/check"
)

func sides() steps.Step {
	return steps.Step{
		Name: "sides", Title: "Web node and cluster",
		Why: "Open OnDemand runs on the web node; its Kubernetes apps shall run on the cluster. carrick looks at the one " +
			"through its files, where it runs there or in a folder that stands for it, and at the other through its API.",
		Ask:   slices.Concat(clusterQuestions(), userQuestions()),
		Facts: slices.Concat(check.IdentityOn(steps.Remote), webNodeFacts()),
		Checks: slices.Concat(
			check.On(steps.Remote, check.Reachable(), check.SignedIn(), check.Clock()),
			webNodeChecks(),
		),
	}
}

func clusterQuestions() []steps.Question {
	return []steps.Question{
		{
			Key: "cluster.id", Title: "Short name of the cluster", Kind: steps.Text, Check: checkClusterID,
			Adopt:   adoptClusterID,
			Help:    "The cluster file's name, without .yml: apps name it in their form.yml and submit.yml.erb.",
			Default: func(e steps.Env) (any, string) { return e.Link, "the link's name" },
		},
		{
			Key: "cluster.title", Title: "Title of the cluster in the portal", Kind: steps.Text,
			Adopt:   adoptClusterKey("metadata.title"),
			Help:    "What users see.",
			Default: func(e steps.Env) (any, string) { return e.Answers.Text("cluster.id"), "the short name" },
		},
		{
			Key: "cluster.server", Title: "Address of the API server, as the web node reaches it", Kind: steps.URL,
			NotFromPeer: true, Proposes: check.ServerFact, Adopt: adoptClusterKey("job.server.endpoint"),
			Help: "It goes into root's kubeconfig and into every user's.",
			Default: func(e steps.Env) (any, string) {
				if e.PeerFromFile() { // the tokens of root and of users go there
					return nil, ""
				}
				if server, err := e.Peer.Text(check.ServerFact); err == nil {
					return server, "the context of the cluster"
				}
				return nil, ""
			},
		},
		{
			Key: "cluster.auth", Title: "How users authenticate at the API server", Kind: steps.Pick, Adopt: adoptAuth,
			Of: []steps.Choice{
				{Value: "oidc", Title: "oidc: with the tokens of their login to the portal"},
				{Value: "managed", Title: "managed: each user's kubeconfig is made by somebody else"},
				{Value: "gke", Title: "gke: Google's own, by a service account file"},
			},
			Help:    "auth.type in the cluster file.",
			Default: steps.Fixed("oidc", "the only way in which carrick can prove it all"),
		},
	}
}

func userQuestions() []steps.Question {
	return []steps.Question{
		{
			Key: "users.namespace-prefix", Title: "Prefix of users' namespaces", Kind: steps.Text, Opt: true, Check: checkPrefix,
			Adopt: adoptPrefix("NAMESPACE_PREFIX", "job.namespace_prefix"),
			Help: "NAMESPACE_PREFIX in hook.env and namespace_prefix in the cluster file. Policies and reapers tell users' " +
				"namespaces by it.",
			Default: steps.Fixed("user-", "what upstream's policies are written for"),
		},
		{
			Key: "users.username-prefix", Title: "Prefix of users' names in their kubeconfig", Kind: steps.Text, Opt: true,
			Check: checkUserPrefix, Adopt: adoptPrefix("K8S_USERNAME_PREFIX", "job.username_prefix"),
			Help: "K8S_USERNAME_PREFIX in hook.env and username_prefix in the cluster file: tells the users of two " +
				"clusters apart in one kubeconfig. The API server never sees it.",
			Default: steps.Fixed("", "there is one cluster"),
		},
	}
}
