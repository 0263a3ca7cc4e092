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
		Map: steps.MapRow{Local: "API, virtual node", Remote: "edge files"},
		Why: "A virtual node passes its pods to a plugin on an edge node, which runs them as batch jobs. carrick checks " +
			"the cluster through its API. Run carrick on the edge node, too, with a facts file from the cluster, so that it " +
			"can read the plugin's files.",
		Ask: []steps.Question{
			{
				Key: "vk.node", Title: "Name of the virtual node", Kind: steps.Name, Adopt: adoptNode,
				Help: "Enter nodeName from the chart's values, such as virtual-node. The names of the chart's objects " +
					"start with it.",
				Default: nodeDefault,
			},
			{
				Key: "vk.namespace", Title: "Namespace of InterLink", Kind: steps.Name, Adopt: adoptKubelet,
				Help: "Enter the namespace where the chart is installed. It contains the virtual kubelet's Deployment " +
					"and ConfigMap.",
				Default: namespaceDefault,
			},
			{
				Key: "vk.job-hours", Title: "Longest job (hours)", Kind: steps.Number, Check: checkJobHours,
				Help: "Enter the longest walltime of the batch system in hours, such as 72. Tokens and certificates must be " +
					"valid for longer, because a job gets them only once.",
				Default: steps.Fixed(72, "default, three days"),
			},
		},
		Facts: slices.Concat(check.IdentityOn(steps.Local), []steps.Fact{
			{Name: "virtual-node", Title: "the name of the virtual node", On: steps.Local, Learn: virtualNode},
			{Name: "virtual-kubelet", Title: "the namespace of the virtual kubelet", On: steps.Local, Learn: kubeletNamespace},
			{
				Name: "server-version", Title: "the version of the API server", On: steps.Local, Shared: true,
				Learn: check.VersionOf,
			},
		}),
		Checks: slices.Concat(
			check.On(
				steps.Local, check.Reachable(), check.SignedIn(), check.Clock(), serverVersionCheck(),
				check.MayMakeCheck(
					"Without these permissions the set-up stops half-way: no job uses the endpoint, or jobs use an endpoint that "+
						"does not exist.",
					page, mayMake,
				),
			),
			nodeChecks(), rightsChecks(),
			[]steps.Check{{
				Name: "edge-files", Title: "The edge node's files can be read and written", On: steps.Remote,
				Why: "carrick must read the plugin's configuration and job files, which belong to root or to the " +
					"plugin's user.",
				References: []string{page}, Run: edgeFiles,
			}},
		),
	}
}

func serverVersionCheck() steps.Check {
	c := check.AtLeast(
		24,
		"Tokens that are bound to a pod, and kubectl auth whoami, require at least this version.",
	)
	c.Needs = []string{"reachable"}
	return c
}

// The following functions return the names of the chart's objects.
func nodeName(e steps.Env) string    { return e.Answers.Text("vk.node") }
func vkNamespace(e steps.Env) string { return e.Answers.Text("vk.namespace") }
func vkDeployment(e steps.Env) string {
	return nodeName(e) + kubeletSuffix
}

func vkConfigMap(e steps.Env) string { return nodeName(e) + configSuffix }

// vkIdentity returns the ServiceAccount of the virtual kubelet, and vkUser returns its user name.
func vkIdentity(e steps.Env) check.Account {
	return check.Account{Namespace: vkNamespace(e), Name: nodeName(e)}
}
func vkUser(e steps.Env) string { return vkIdentity(e).Username() }

func nodeDefault(e steps.Env) (any, string) {
	if name, err := e.Own.Text("virtual-node"); err == nil {
		return name, "from the node with the label " + nodeLabel
	}
	return usualNode, "the chart's default"
}

func namespaceDefault(e steps.Env) (any, string) {
	if name, err := e.Own.Text("virtual-kubelet"); err == nil {
		return name, "from ClusterRoleBinding " + nodeName(e) + "-rolebinding"
	}
	return "interlink", "from the published guide"
}

func checkJobHours(v string) error {
	if n, err := strconv.Atoi(v); err != nil || n < 1 || n > 24*365 {
		return errors.New("enter a number of hours from 1 to 8760 (a year)")
	}
	return nil
}

func edgeFiles(_ context.Context, e steps.Env) steps.Result {
	switch {
	case e.Host.IsFolder():
		return steps.Passed(
			"directory %s stands for the edge node; commands run only on the edge node itself", e.Host.Root,
		)
	case !e.Host.ByRoot():
		return steps.Warned(
			"carrick does not run as root on the edge node, so it can neither read root's files nor write",
			"run on the edge node: sudo carrick check "+e.LinkFile()+" --side remote",
		)
	}
	return steps.Passed("carrick runs as root on the edge node itself")
}

// adoptNode returns the existing virtual node.
func adoptNode(ctx context.Context, e steps.Env) (any, string, error) {
	name, err := virtualNode(ctx, e)
	return steps.AdoptFact(name, err, "the node with the label "+nodeLabel)
}

func adoptKubelet(ctx context.Context, e steps.Env) (any, string, error) {
	name, err := kubeletNamespace(ctx, e)
	return steps.AdoptFact(name, err, "ClusterRoleBinding "+nodeName(e)+"-rolebinding")
}
