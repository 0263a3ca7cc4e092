package ondemand

import (
	"slices"

	"carrick/steps"
	"carrick/steps/check"
)

func sides() steps.Step {
	return steps.Step{
		Name: "sides", Title: "Web node and cluster",
		Map: steps.MapRow{Local: "portal", Remote: "API"},
		Why: "Open OnDemand runs on the web node, and its Kubernetes apps run on the cluster. carrick reads the web node's " +
			"files, directly or in a directory that represents the web node, and the cluster's API.",
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
			Adopt: adoptClusterID,
			Help: "The cluster file's name without .yml, such as kubernetes. Apps refer to it in form.yml and " +
				"submit.yml.erb.",
			Default: func(e steps.Env) (any, string) { return e.Link, "the link's name" },
		},
		{
			Key: "cluster.title", Title: "Title of the cluster in the portal", Kind: steps.Text,
			Adopt:   adoptClusterKey("metadata.title"),
			Help:    "The name that users see.",
			Default: func(e steps.Env) (any, string) { return e.Answers.Text("cluster.id"), "the short name" },
		},
		{
			Key: "cluster.server", Title: "API server URL for the web node", Kind: steps.URL,
			NotFromPeer: true, Proposes: check.ServerFact, Adopt: adoptClusterKey("job.server.endpoint"),
			Help: "A URL that the web node can reach, such as https://api.example.org:6443. carrick writes it to root's " +
				"kubeconfig and to every user's kubeconfig.",
			Default: func(e steps.Env) (any, string) {
				if e.PeerFromFile() { // the server receives tokens, so a peer file must not choose it
					return nil, ""
				}
				if server, err := e.Peer.Text(check.ServerFact); err == nil {
					return server, "the cluster's context"
				}
				return nil, ""
			},
		},
		{
			Key: "cluster.auth", Title: "User authentication at the API server", Kind: steps.Pick, Adopt: adoptAuth,
			Of: []steps.Choice{
				{Value: "oidc", Title: "oidc: with the tokens of their portal login"},
				{Value: "managed", Title: "managed: another tool provides each user's kubeconfig"},
				{Value: "gke", Title: "gke: Google's authentication, with a service account file"},
			},
			Help:    "auth.type in the cluster file.",
			Default: steps.Fixed("oidc", "default; the only type that carrick can check completely"),
		},
	}
}

func userQuestions() []steps.Question {
	return []steps.Question{
		{
			Key: "users.namespace-prefix", Title: "Prefix of users' namespaces", Kind: steps.Text, Opt: true, Check: checkPrefix,
			Adopt: adoptPrefix("NAMESPACE_PREFIX", "job.namespace_prefix"),
			Help: "NAMESPACE_PREFIX in hook.env and namespace_prefix in the cluster file, such as user-. Policies and " +
				"reapers identify users' namespaces by this prefix.",
			Default: steps.Fixed("user-", "upstream's policies"),
		},
		{
			Key: "users.username-prefix", Title: "Prefix of usernames in users' kubeconfigs", Kind: steps.Text, Opt: true,
			Check: checkUserPrefix, Adopt: adoptPrefix("K8S_USERNAME_PREFIX", "job.username_prefix"),
			Help: "K8S_USERNAME_PREFIX in hook.env and username_prefix in the cluster file. The prefix distinguishes the " +
				"users of two clusters in one kubeconfig. It is not sent to the API server.",
			Default: steps.Fixed("", "default for a single cluster"),
		},
	}
}
