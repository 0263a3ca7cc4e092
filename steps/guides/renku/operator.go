package renku

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

const publicCharts = "https://swissdatasciencecenter.github.io/helm-charts"

func operator() steps.Step {
	return steps.Step{
		Name: "operator", Title: "Operator and driver",
		Map: steps.MapRow{Local: "session CRD", Remote: "operator, csi-rclone"},
		Why: "The session operator (amalthea-sessions) and the data connector driver (csi-rclone) run on the remote " +
			"cluster, in the same versions as on the local cluster.",
		Ask: operatorQuestions(),
		Actions: []steps.Action{
			{
				Name: "driver-namespace", Title: "Create the namespace of csi-rclone", On: steps.Remote, When: makesDriverNamespace,
				Reads: whatExists,
				Doer:  action.Manifest{File: "driver-namespace.yaml"},
			},
			{
				Name: "driver", Title: "Install csi-rclone", On: steps.Remote, When: installsDriver, Reads: whatExists,
				Doer: action.Chart{
					Release: "${answers.driver.release}", Namespace: "${answers.driver.namespace}", Chart: driverChart,
					Source:  check.ChartSource("charts.source", driverChart),
					Version: check.AnswerText("driver.version"), Values: driverValues,
				},
			},
			{
				Name: "operator", Title: "Install the session operator", On: steps.Remote, Needs: []string{"namespace"},
				When: installsOperator, Reads: whatExists,
				Doer: action.Chart{
					Release: "${answers.operator.release}", Namespace: "${answers.sessions.namespace}", Chart: operatorChart,
					Source:  check.ChartSource("charts.source", operatorChart),
					Version: check.AnswerText("operator.version"), Values: operatorValues,
				},
			},
			{
				Name: "custom-cas", Title: "Copy the CA certificates that sessions mount", On: steps.Remote,
				Needs: []string{"namespace"}, When: copiesCAs,
				Doer: action.Manifest{File: "custom-ca.yaml", Each: eachCA},
			},
		},
		Checks: slices.Concat(operatorChecks(), driverChecks(), userSessionChecks()),
	}
}

// whatExists lists the permissions that carrick needs to find an existing operator, driver and
// ingress.
var whatExists = slices.Concat(
	check.Verbs("apps", "deployments", "", "get", "list", "watch"),
	check.Verbs("apps", "daemonsets", "", "get", "list", "watch"),
	check.Verbs("", "nodes", "", "get", "list", "watch"),
	check.Verbs("apiextensions.k8s.io", "customresourcedefinitions", "", "get", "list", "watch"),
	check.Verbs("networking.k8s.io", "ingressclasses", "", "get", "list", "watch"),
	check.Verbs("", "secrets", rcloneSpace, "get", "list", "watch"),
	check.Verbs("rbac.authorization.k8s.io", "clusterrolebindings", "", "get", "list", "watch"),
	check.Verbs("rbac.authorization.k8s.io", "clusterroles", "", "get", "list", "watch"),
)

func operatorQuestions() []steps.Question {
	return []steps.Question{
		{
			Key: "charts.source", Title: "Chart source", Kind: steps.Text, On: steps.Remote,
			Check: check.ValidSource,
			Help: "Enter a chart repository (https://…), a registry (oci://…), or a local directory that contains the " +
				"directories amalthea-sessions and csi-rclone.",
			Default: sourceOfCharts,
		},
		{
			Key: "operator.version", Title: "Chart version of amalthea-sessions", Kind: steps.Text, On: steps.Remote,
			Check: checkVersion,
			Help: "Enter the version that runs on the local cluster, such as 0.30.2, because both clusters must have the " +
				"same session CRD.",
			Default: localVersion("amalthea", "", ""),
		},
		{
			Key: "operator.release", Title: "Helm release of the session operator", Kind: steps.Name, On: steps.Remote,
			Help:    "Enter the name of the Helm release. carrick installs the release in the session namespace.",
			Default: releaseThatExists("operator-stands", operatorChart),
		},
		{
			Key: "sessions.framed", Title: "Sessions in a frame of the portal", Kind: steps.YesNo, On: steps.Remote,
			Adopt: adoptFramed,
			Help: "If no, each session opens in its own tab. In a frame, the browser sends the session cookie to another " +
				"site, so the ingress needs additional protection.",
			Default: steps.Fixed(false, "carrick's default, because sessions in their own tab need no additional protection"),
		},
		{
			Key: "sessions.data-connectors", Title: "Data connectors in sessions (csi-rclone)",
			Kind: steps.YesNo, On: steps.Remote,
			Help: "csi-rclone runs privileged and reads its backend from a Secret that Renku's kubeconfig can write. With " +
				"the backend type local, a session can mount the volumes of other pods on its node. If no, carrick does not " +
				"install csi-rclone, and admission policies prevent Renku's kubeconfig from creating sessions with data " +
				"connectors.",
			Default: steps.Fixed(true, "the published guide"),
		},
		{
			Key: "driver.version", Title: "Chart version of csi-rclone", Kind: steps.Text, When: mountsConnectors,
			On: steps.Remote, Check: checkVersion,
			Help:    "Enter the version that runs on the local cluster, such as 0.6.0.",
			Default: localVersion("csi-rclone", "0.6.0", "the version in Renku 2.16 to 2.19"),
		},
		{
			Key: "driver.release", Title: "Helm release of csi-rclone", Kind: steps.Name, When: mountsConnectors,
			On: steps.Remote,
			Help: "Enter the name of the Helm release. A cluster needs only one release, because the driver runs on " +
				"every node.",
			Default: releaseThatExists("driver-stands", driverChart),
		},
		{
			Key: "driver.namespace", Title: "Namespace of csi-rclone", Kind: steps.Namespace, When: mountsConnectors,
			On:   steps.Remote,
			Help: "The pods of csi-rclone are privileged. carrick creates the namespace if it does not exist.",
			Default: func(e steps.Env) (any, string) {
				from := "the published guide"
				switch ns := e.Own.FieldText("driver-stands", "namespace"); ns {
				case "":
				case rcloneSpace:
					from = "the existing csi-rclone"
				default:
					from += "; another csi-rclone exists in namespace " + clean.Name(ns)
				}
				// Do not use the namespace of an existing csi-rclone as the default. Any tenant can
				// create a DaemonSet of that name, and carrick would make the tenant's namespace
				// privileged.
				return rcloneSpace, from
			},
		},
		{
			Key: "sessions.user-secrets", Title: "User secrets in sessions on this cluster", Kind: steps.Pick,
			Opt: true, On: steps.Remote,
			Of: []steps.Choice{
				{Value: "no", Title: "no: users know that user secrets do not work on this cluster"}, {Value: "yes", Title: "yes"},
			},
			Help: "Renku serves user secrets at an address of the local cluster. Sessions on the remote cluster cannot reach " +
				"this address.",
		},
	}
}

func sourceOfCharts(e steps.Env) (any, string) {
	const public = "the public repository of Renku's charts"
	other, err := e.Peer.Text("chart-repository")
	switch {
	case err != nil:
		return publicCharts, public
	case other == publicCharts, check.OnLoopback(other) &&
		!e.PeerFromFile(): // the repository is on this machine
		return other, "from Renku's release"
	}
	// The URL comes from Renku's release Secret or from a facts file. Anyone who can write these must
	// not be able to choose the charts that carrick installs.
	return publicCharts, public + "; Renku's release uses " + clean.Name(other) + " (enter this URL to use it)"
}

// localVersion returns a Default function for a chart version. It uses the version on the local
// cluster, then the version that Renku's chart pins, then the parameter otherwise. The parameter
// why describes the source of otherwise.
func localVersion(fact, otherwise, why string) func(steps.Env) (any, string) {
	return func(e steps.Env) (any, string) {
		s, err := seenOf(e.Peer, fact)
		switch v := s.version(); {
		case err == nil && v != "" && checkVersion(v) == nil:
			return v, "the version on the " + e.PeerName() + " cluster"
		case err == nil && s.pinned != "":
			return s.pinned, "the version in Renku's release"
		case otherwise != "":
			return otherwise, why
		}
		return nil, ""
	}
}

func releaseThatExists(fact, otherwise string) func(steps.Env) (any, string) {
	return func(e steps.Env) (any, string) {
		if name := e.Own.FieldText(fact, "release"); name != "" {
			return name, "the existing release"
		}
		return otherwise, "the chart's name"
	}
}

var checkVersion = check.ValidVersion("0.30.2")

// atLeast reports whether version v is not older than version least. It returns false if v is not a
// valid version.
func atLeast(v, least string) bool {
	have, err := version.ParseSemantic(v)
	return err == nil && have.AtLeast(version.MustParseSemantic(least))
}

func caNames(e steps.Env) ([]string, error) { return e.Peer.List("session-cas") }

// copiesCAs reports whether the plan includes copying CA Secrets. If the names of the Secrets
// cannot be read, it returns true, so that the plan shows the error. If the fact session-cas is
// absent, it returns false, because the check custom-cas-exist reports this.
func copiesCAs(e steps.Env) bool {
	names, err := caNames(e)
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) {
		return false
	}
	return err != nil || len(names) > 0
}

// eachCA returns a map with name and data for each CA Secret. The data comes from the local
// cluster.
func eachCA(_ context.Context, e steps.Env) ([]any, error) {
	names, err := caNames(e)
	if err != nil {
		return nil, err
	}
	have, err := e.Peer.Map("custom-cas")
	if err != nil {
		return nil, err
	}
	var out []any
	for _, name := range names {
		data, ok := have[name].(map[string]any)
		if !ok {
			return nil, steps.Absent(
				"sessions mount Secret %s, but Renku's Helm value global.certificates.customCAs does not name the Secret: copy "+
					"it manually",
				name,
			)
		}
		out = append(out, map[string]any{"name": name, "data": data})
	}
	return out, nil
}
