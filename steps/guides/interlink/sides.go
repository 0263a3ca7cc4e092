package interlink

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"carrick/steps"
	"carrick/steps/check"
)

func sides() steps.Step {
	return steps.Step{
		Name: "sides", Title: "Cluster and edge",
		Why: "A virtual node hands its pods to a plugin on an edge node, which makes jobs of them. carrick looks at the " +
			"cluster through its API; on the edge node it runs itself, with a file of facts from the cluster, and looks at " +
			"the plugin's files.",
		Ask: []steps.Question{
			{
				Key: "vk.node", Title: "Name of the virtual node", Kind: steps.Name, Adopt: adoptNode,
				Help:    "nodeName in the chart's values: all of its objects are called after it.",
				Default: nodeDefault,
			},
			{
				Key: "vk.namespace", Title: "Namespace of InterLink", Kind: steps.Name, Adopt: adoptKubelet,
				Help:    "Where the chart is installed: the virtual kubelet's Deployment and its configuration stand there.",
				Default: namespaceDefault,
			},
			{
				Key: "vk.job-hours", Title: "Hours that the longest job runs", Kind: steps.Number, Check: checkJobHours,
				Help: "The longest walltime of the batch system. Tokens and certificates have to last longer: a job is " +
					"given them once.",
				Default: steps.Fixed(72, "three days"),
			},
		},
		Facts: slices.Concat(check.IdentityOn(steps.Local), []steps.Fact{
			{Name: "virtual-node", Title: "the virtual node of the cluster", On: steps.Local, Learn: virtualNode},
			{Name: "virtual-kubelet", Title: "the namespace of the virtual kubelet", On: steps.Local, Learn: kubeletNamespace},
			{
				Name: "server-version", Title: "the version of the API server", On: steps.Local, Shared: true,
				Learn: check.VersionOf,
			},
		}),
		Checks: slices.Concat(
			check.On(
				steps.Local, check.Reachable(), check.SignedIn(), check.Clock(), serverVersionCheck(),
				check.MayMakeCheck("a right that is missing half-way leaves an endpoint of which no job is told, "+
					"or jobs that are told of one that is not there", page, mayMake),
			),
			nodeChecks(), rightsChecks(),
			[]steps.Check{{
				Name: "edge-files", Title: "carrick may look at the edge node", On: steps.Remote,
				Why:        "the plugin's configuration and its jobs' files belong to root or to the plugin's user",
				References: []string{page}, Run: edgeFiles,
			}},
		),
	}
}

func serverVersionCheck() steps.Check {
	c := check.AtLeast(
		24,
		"tokens that are bound to a pod are made by an API that is what it is since then, and kubectl auth whoami "+
			"needs it, too",
	)
	c.Needs = []string{"reachable"}
	return c
}

// These functions return the names of the chart's objects.
func nodeName(e steps.Env) string    { return e.Answers.Text("vk.node") }
func vkNamespace(e steps.Env) string { return e.Answers.Text("vk.namespace") }
func vkDeployment(e steps.Env) string {
	return nodeName(e) + kubeletSuffix
}

func vkConfigMap(e steps.Env) string { return nodeName(e) + configSuffix }

// vkIdentity returns the ServiceAccount of the virtual kubelet, and vkUser its user name.
func vkIdentity(e steps.Env) check.Account {
	return check.Account{Namespace: vkNamespace(e), Name: nodeName(e)}
}
func vkUser(e steps.Env) string { return vkIdentity(e).Username() }

func nodeDefault(e steps.Env) (any, string) {
	if name, err := e.Own.Text("virtual-node"); err == nil {
		return name, "the node that has the label " + nodeLabel
	}
	return usualNode, "the chart"
}

func namespaceDefault(e steps.Env) (any, string) {
	if name, err := e.Own.Text("virtual-kubelet"); err == nil {
		return name, "ClusterRoleBinding " + nodeName(e) + "-rolebinding"
	}
	return "interlink", "the published guide"
}

func checkJobHours(v string) error {
	if n, err := strconv.Atoi(v); err != nil || n < 1 || n > 24*365 {
		return errors.New("a number of hours from 1 to 8760 (a year)")
	}
	return nil
}

func edgeFiles(_ context.Context, e steps.Env) steps.Result {
	switch {
	case e.Host.IsFolder():
		return steps.Passed(
			"the folder %s stands for it; what it takes commands for is looked at on the edge node alone", e.Host.Root,
		)
	case !e.Host.ByRoot():
		return steps.Warned(
			"carrick does not run as root there: what only root may read is unknown, and nothing can be written",
			"run on the edge node: sudo carrick check "+e.LinkFile()+" --side remote",
		)
	}
	return steps.Passed("as root, on the edge node itself")
}

// adoptNode returns the existing virtual node.
func adoptNode(ctx context.Context, e steps.Env) (any, string, error) {
	name, err := virtualNode(ctx, e)
	return steps.AdoptFact(name, err, "the node that has the label "+nodeLabel)
}

func adoptKubelet(ctx context.Context, e steps.Env) (any, string, error) {
	name, err := kubeletNamespace(ctx, e)
	return steps.AdoptFact(name, err, "ClusterRoleBinding "+nodeName(e)+"-rolebinding")
}
