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
		Map: steps.MapRow{Local: "cluster record", Remote: "session URLs", Arrow: steps.Remote},
		Why: "carrick registers the cluster in Renku's API as an admin. The record names the cluster's kubeconfig and the " +
			"address of its sessions.",
		Ask: registerQuestions(),
		Facts: []steps.Fact{
			{Name: "cluster-row", Title: "the cluster's record in Renku", On: steps.Local, Shared: true, Learn: clusterRow},
			{Name: "cluster-id", Title: "the cluster's ID in Renku", On: steps.Local, Learn: registeredID},
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
			Key: "renku.url", Title: "URL of the Renku portal", Kind: steps.URL, NotFromPeer: true, Check: checkRenkuURL,
			Help: "Enter https:// and the host name, without a path, such as https://renku.example.org. Renku's API must " +
				"answer at /api/data under this URL (check api-answers).",
			Default: portalAddress,
		},
		{
			Key: "renku.token", Title: "Renku admin token", Kind: steps.Text, Opt: true, Secret: true, By: "sign-in",
			ExportFile: `"$private/token"`, Check: checkToken,
			Help: "Leave it empty to sign in with a browser when needed. carrick keeps the token in memory only.",
		},
		{
			Key: "cluster.name", Title: "Cluster name in Renku", Kind: steps.Text, Check: checkClusterName,
			Adopt:   asRegistered("name"),
			Help:    "Use 5 to 40 characters. The name must be unique in Renku.",
			Default: nameFromLink,
		},
		{
			Key: "sessions.protocol", Title: "Protocol of session addresses", Kind: steps.Pick,
			Adopt: asRegistered(fieldProtocol),
			Of: []steps.Choice{
				{Value: "https", Title: "https"}, {Value: "http", Title: "http: many sign-ins fail"},
			},
			Help:    "Choose the protocol with which browsers open sessions.",
			Default: steps.Fixed("https", "from the published guide"),
		},
		{
			Key: "sessions.port", Title: "Port of session addresses", Kind: steps.Port,
			Adopt: registeredAddress("session_port"),
			Help:  "Enter the port at which browsers reach the ingress of the remote cluster, such as 443.",
			Default: func(e steps.Env) (any, string) {
				if port, err := e.Own.Value("redirect-port"); err == nil {
					return port, "the redirect URIs of Renku's login"
				}
				return 443, "the default for https"
			},
		},
		{
			Key: "sessions.path", Title: "Path before each session's name", Kind: steps.Text, Opt: true, Check: checkSessionPath,
			Adopt: asRegistered("session_path"),
			Help:  "Leave it empty, or enter a path such as /sessions, with a leading and without a trailing slash.",
		},
		{
			Key: "sessions.annotations", Title: "Additional annotations of the sessions' Ingress", Kind: steps.Text, Many: true,
			Opt: true, On: steps.Remote, Check: checkAnnotation,
			Adopt: adoptAnnotations,
			Help: "Enter key=value for each annotation. key=value overrides an annotation that carrick sets, and key= removes " +
				"that annotation. Write values with spaces or commas into the link file.",
		},
	}
}

func portalAddress(e steps.Env) (any, string) {
	if domain, err := e.Own.Text("renku-domain"); err == nil {
		return "https://" + domain, "from the Helm release"
	}
	if domain := e.Answers.Text("renku.domain"); domain != "" {
		return "https://" + domain, "from Renku's domain"
	}
	return nil, ""
}

// nameFromLink returns the link's name. If that name is too short for Renku, it adds the prefix
// "remote-".
func nameFromLink(e steps.Env) (any, string) {
	for _, name := range []string{e.Link, "remote-" + e.Link} {
		if checkClusterName(name) == nil {
			return name, "from the link's name"
		}
	}
	return nil, ""
}

func apiAccessChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "api-answers", Title: "Renku's API answers", On: steps.Local, From: fromAPI,
			Why: "All later checks use this API. A login page, a proxy or another service at this address would " +
				"also answer.",
			References: []string{clustersSource},
			Run:        apiAnswers,
		},
		{
			Name: "api-knows-fields", Title: "Renku's API has every field that the cluster needs", On: steps.Local,
			From:  fromAPI,
			Needs: []string{"api-answers"},
			Why: "An older Renku supports neither the controller's default certificate nor a ServiceAccount " +
				"for sessions.",
			References: []string{clustersSource},
			Run:        apiKnowsFields,
		},
		{
			Name: "api-signed-in", Title: "You are signed in to Renku", On: steps.Local, From: fromAPI, FixedBy: "sign-in",
			Needs:      []string{"api-answers"},
			Why:        "Renku shows clusters only to admins. It rejects an expired token with HTTP 401 and gives no reason.",
			References: []string{"SwissDataScienceCenter/renku-data-services: components/renku_data_services/authn/keycloak.py"},
			Run:        signedIn,
		},
		{
			Name: "api-admin", Title: "You are a Renku admin", On: steps.Local, From: fromAPI,
			Needs:      []string{"api-signed-in"},
			Why:        "Only admins can register clusters and create pools.",
			References: []string{"SwissDataScienceCenter/renku-data-services: components/renku_data_services/authn/keycloak.py"},
			Run:        isAdmin,
		},
	}
}

func clusterChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "cluster-name-free", Title: "No other cluster in Renku has this name", On: steps.Local, From: fromAPI,
			Needs:      []string{"api-admin"},
			Why:        "Renku rejects a second cluster with the same name.",
			References: []string{clustersSource},
			Run:        nameFree,
		},
		{
			Name: "cluster-registered", Title: "The cluster is registered in Renku", On: steps.Local, From: fromAPI,
			FixedBy: "register",
			Needs:   []string{"api-admin"},
			Why: "Pools require a registered cluster. In the published guide, the endpoint /cluster must be " +
				"/api/data/clusters, and the last payload is not valid JSON.",
			References: []string{page, clustersSource},
			Run:        isRegistered,
		},
		{
			Name: "cluster-as-planned", Title: "Renku stored every field as sent", On: steps.Local, From: fromAPI,
			FixedBy: "register", Needs: []string{"cluster-registered"},
			Why: "When Renku creates a cluster, it drops the default-certificate flag (also with the published guide's " +
				"payload) and then serves sessions over HTTP.",
			References: []string{clustersSource, "SwissDataScienceCenter/amalthea PR 1106"},
			Run:        asPlanned,
		},
	}
}
