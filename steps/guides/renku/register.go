package renku

import (
	"slices"

	"carrick/steps"
)

const clustersSource = "SwissDataScienceCenter/renku-data-services: components/renku_data_services/crc " +
	"(api.spec.yaml, core.py, db.py, orm.py)"

func register() steps.Step {
	return steps.Step{
		Name: "register", Title: "Register",
		Why: "Renku learns of the remote cluster through its HTTP API, as an admin: which kubeconfig it is, and at which " +
			"address sessions are served there.",
		Ask: registerQuestions(),
		Facts: []steps.Fact{
			{Name: "cluster-row", Title: "the cluster as Renku has it", On: steps.Local, Shared: true, Learn: clusterRow},
			{Name: "cluster-id", Title: "the cluster's id in Renku", On: steps.Local, Learn: registeredID},
			{
				Name: "ingress-controller", Title: "the controller of the sessions' IngressClass", On: steps.Remote, Shared: true,
				Learn: ingressController,
			},
			{
				Name: "session-annotations", Title: "the annotations of the sessions' Ingress", On: steps.Remote, Shared: true,
				Learn: sessionAnnotations,
			},
		},
		Actions: []steps.Action{signIn(), registerCluster()},
		Checks:  slices.Concat(apiAccessChecks(), addressChecks(), annotationChecks(), clusterChecks()),
	}
}

func registerQuestions() []steps.Question {
	return []steps.Question{
		{
			Key: "renku.url", Title: "Address of the Renku portal", Kind: steps.URL, NotFromPeer: true, Check: checkRenkuURL,
			Help: "https:// and the host name, without a path. Its API is asked below /api/data: whether it is Renku that " +
				"answers there, and not a login page or a proxy, says the check api-answers.",
			Default: portalAddress,
		},
		{
			Key: "renku.token", Title: "Token of an admin of Renku", Kind: steps.Text, Opt: true, Secret: true, By: "sign-in",
			Check: checkToken,
			Help:  "Empty: you sign in with a browser when it is needed. It is kept in memory only.",
		},
		{
			Key: "cluster.name", Title: "Name of the cluster in Renku", Kind: steps.Text, Check: checkClusterName,
			Adopt:   asRegistered("name"),
			Help:    "5 to 40 characters, and no other cluster's name.",
			Default: nameFromLink,
		},
		{
			Key: "sessions.protocol", Title: "Protocol of the sessions' address", Kind: steps.Pick,
			Adopt: asRegistered(fieldProtocol),
			Of: []steps.Choice{
				{Value: "https", Title: "https"}, {Value: "http", Title: "http: many sign-ins fail with it"},
			},
			Help:    "How browsers open sessions.",
			Default: steps.Fixed("https", "the published guide"),
		},
		{
			Key: "sessions.port", Title: "Port of the sessions' address", Kind: steps.Port,
			Adopt: registeredAddress("session_port"),
			Help:  "Where the remote cluster's ingress is reached from outside.",
			Default: func(e steps.Env) (any, string) {
				if port, err := e.Own.Value("redirect-port"); err == nil {
					return port, "Renku's login lets it in already"
				}
				return 443, "the protocol's own"
			},
		},
		{
			Key: "sessions.path", Title: "Path before each session's name", Kind: steps.Text, Opt: true, Check: checkSessionPath,
			Adopt: asRegistered("session_path"),
			Help:  "Empty, or like /sessions: with a slash before it and none after.",
		},
		{
			Key: "sessions.annotations", Title: "More annotations of the sessions' Ingress", Kind: steps.Text, Many: true,
			Opt: true, On: steps.Remote, Check: checkAnnotation,
			Adopt: adoptAnnotations,
			Help: "key=value each, over those that carrick sets; key= takes one of those away. Values with spaces or commas " +
				"go into the link file.",
		},
	}
}

func portalAddress(e steps.Env) (any, string) {
	if domain, err := e.Own.Text("renku-domain"); err == nil {
		return "https://" + domain, "the Helm release"
	}
	if domain := e.Answers.Text("renku.domain"); domain != "" {
		return "https://" + domain, "Renku's domain"
	}
	return nil, ""
}

// nameFromLink returns the link's name if Renku accepts it.
func nameFromLink(e steps.Env) (any, string) {
	for _, name := range []string{e.Link, "remote-" + e.Link} {
		if checkClusterName(name) == nil {
			return name, "the link's name"
		}
	}
	return nil, ""
}

func apiAccessChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "api-answers", Title: "Renku's API answers", On: steps.Local, From: fromAPI,
			Why: "all that follows is asked there. A login page, a proxy or another service at that address answers, " +
				"too, and is not Renku",
			References: []string{clustersSource},
			Run:        apiAnswers,
		},
		{
			Name: "api-knows-fields", Title: "Renku knows all that a remote cluster needs", On: steps.Local, From: fromAPI,
			Needs:      []string{"api-answers"},
			Why:        "an older Renku takes neither the controller's default certificate nor a ServiceAccount of the sessions",
			References: []string{clustersSource},
			Run:        apiKnowsFields,
		},
		{
			Name: "api-signed-in", Title: "you are signed in to Renku", On: steps.Local, From: fromAPI, FixedBy: "sign-in",
			Needs:      []string{"api-answers"},
			Why:        "clusters are shown to admins alone; to a token that has expired Renku says no more than 401",
			References: []string{"SwissDataScienceCenter/renku-data-services: components/renku_data_services/authn/keycloak.py"},
			Run:        signedIn,
		},
		{
			Name: "api-admin", Title: "you are an admin of Renku", On: steps.Local, From: fromAPI,
			Needs:      []string{"api-signed-in"},
			Why:        "nobody else may register clusters and make pools",
			References: []string{"SwissDataScienceCenter/renku-data-services: components/renku_data_services/authn/keycloak.py"},
			Run:        isAdmin,
		},
	}
}

func clusterChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "cluster-name-free", Title: "the cluster's name is free, or ours", On: steps.Local, From: fromAPI,
			Needs:      []string{"api-admin"},
			Why:        "names are unique in Renku",
			References: []string{clustersSource},
			Run:        nameFree,
		},
		{
			Name: "cluster-registered", Title: "Renku knows the cluster", On: steps.Local, From: fromAPI, FixedBy: "register",
			Needs: []string{"api-admin"},
			Why: "without it there is no pool; the published guide calls the endpoint /cluster, it is " +
				"/api/data/clusters, and its last payload is no JSON",
			References: []string{page, clustersSource},
			Run:        isRegistered,
		},
		{
			Name: "cluster-as-planned", Title: "Renku has stored every field as it was given", On: steps.Local, From: fromAPI,
			FixedBy: "register", Needs: []string{"cluster-registered"},
			Why: "a new cluster loses the flag of the default certificate without a word, also with the published " +
				"guide's payload: sessions are then served by http",
			References: []string{clustersSource, "SwissDataScienceCenter/amalthea PR 1106"},
			Run:        asPlanned,
		},
	}
}
