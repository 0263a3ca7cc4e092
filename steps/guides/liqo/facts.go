package liqo

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

// usualNamespace is the default namespace of Liqo.
const usualNamespace = "liqo"

const idMapLabel = "app.kubernetes.io/name=clusterid-configmap"

// managerEnding is the suffix of the name of Liqo's controller Deployment.
const managerEnding = "controller-manager"

func clusterIDFacts() []steps.Fact {
	return []steps.Fact{
		{Name: "liqo-namespace", Title: "Liqo's namespace", On: steps.Both, Shared: true, Learn: liqoNamespace},
		{Name: "cluster-id", Title: "the cluster id", On: steps.Both, Shared: true, Learn: clusterID},
		{Name: "liqo-version", Title: "Liqo's version", On: steps.Both, Shared: true, Learn: liqoVersion},
		{Name: "pod-cidrs", Title: "the pod CIDRs", On: steps.Both, Shared: true, Learn: cidrs("pod-cidr")},
		{Name: "external-cidrs", Title: "the external CIDR", On: steps.Both, Shared: true, Learn: cidrs("external-cidr")},
		{
			Name: "networking", Title: "whether Liqo's networking module is enabled", On: steps.Both, Shared: true,
			Learn: networkingOn,
		},
		{Name: heldUpFact, Title: "the problems that block Liqo", On: steps.Both, Shared: true, Now: true, Learn: heldUp},
	}
}

// liqoSpaceQuestion returns the question for Liqo's namespace on a side. The question is shown only if the namespace
// cannot be determined or the answers already contain it.
func liqoSpaceQuestion(who string, side steps.Side) steps.Question {
	key := who + ".liqo-namespace"
	return steps.Question{
		Key: key, Title: "Liqo namespace on the " + who, Kind: steps.Namespace, On: side, Opt: true,
		Help: "The namespace in which Liqo is installed, such as liqo. Empty: the only namespace with Liqo's controllers " +
			"and its cluster id ConfigMap.",
		When: func(e steps.Env) bool {
			_, err := liqoSpace(e)
			return steps.IsAbsent(err) || e.Answers.Text(key) != ""
		},
	}
}

// idMaps returns the ConfigMaps with the label of Liqo's cluster id ConfigMap. It searches the namespace in the
// answers, or all namespaces if the answers contain none. If listing all namespaces is forbidden, it searches Liqo's
// default namespace.
func idMaps(ctx context.Context, e steps.Env) ([]*unstructured.Unstructured, error) {
	answered := e.Answers.Text(e.SideName() + ".liqo-namespace")
	found, err := living(ctx, e, check.ConfigMaps, answered, idMapLabel)
	if apierrors.IsForbidden(err) && answered == "" {
		found, err = living(ctx, e, check.ConfigMaps, usualNamespace, idMapLabel)
	}
	return found, err
}

// idMap returns the ConfigMap with the cluster id. Any tenant can create a ConfigMap with the same label. Therefore,
// unless the answers contain the namespace, the Deployment of Liqo's controllers must be in the same namespace. If
// several namespaces have both objects, a ClusterRoleBinding must also bind the controllers' ServiceAccount to Liqo's
// ClusterRole. Tenants cannot create ClusterRoleBindings.
func idMap(ctx context.Context, e steps.Env) (*unstructured.Unstructured, error) {
	if e.Answers.Text(e.SideName()+".liqo-namespace") == "" {
		e.Cluster.StartList(usualNamespace, check.Deployments)
	}
	all, err := idMaps(ctx, e)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, steps.Absent("the %s has no ConfigMap with a cluster id: Liqo is not installed", e.SideName())
	}
	if e.Answers.Text(e.SideName()+".liqo-namespace") != "" {
		return all[0], nil
	}
	var beside []*unstructured.Unstructured
	for _, m := range all {
		switch _, err := deploymentIn(ctx, e, m.GetNamespace(), managerEnding); {
		case err == nil:
			beside = append(beside, m)
		case !steps.IsAbsent(err):
			return nil, err
		}
	}
	if len(spacesOf(beside)) > 1 {
		bound, err := boundControllers(ctx, e, beside)
		if err != nil {
			return nil, err
		}
		if len(spacesOf(bound)) == 1 {
			beside = bound
		}
	}
	switch spaces := spacesOf(beside); len(spaces) {
	case 1:
		return beside[0], nil
	case 0:
		return nil, steps.Absent(
			"namespaces with a cluster id ConfigMap (%s) have no Liqo controllers; set %s.liqo-namespace to Liqo's namespace",
			check.OrNone(spacesOf(all)), e.SideName(),
		)
	default:
		return nil, steps.Absent(
			"several namespaces have a cluster id ConfigMap and Liqo controllers (%s); set %s.liqo-namespace to "+
				"Liqo's namespace",
			check.OrNone(spaces), e.SideName(),
		)
	}
}

// boundControllers returns the objects in namespaces where a ClusterRoleBinding binds the ServiceAccount of Liqo's
// controllers to Liqo's ClusterRole. Liqo's chart creates this binding (liqotech/liqo:
// deployments/liqo/templates/liqo-controller-manager-rbac.yaml). If reading the bindings is forbidden, boundControllers
// returns nil.
func boundControllers(
	ctx context.Context, e steps.Env, objs []*unstructured.Unstructured,
) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, o := range objs {
		d, err := deploymentIn(ctx, e, o.GetNamespace(), managerEnding)
		if err != nil {
			return nil, err
		}
		grants, err := check.Grants(ctx, e.Cluster, o.GetNamespace())
		if apierrors.IsForbidden(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(grants, func(g check.Grant) bool {
			return g.Of == "" && g.Account == d.Spec.Template.Spec.ServiceAccountName && g.Role == "ClusterRole/"+d.Name
		}) {
			out = append(out, o)
		}
	}
	return out, nil
}

func spacesOf(objs []*unstructured.Unstructured) []string {
	var out []string
	for _, o := range objs {
		out = append(out, o.GetNamespace())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func liqoNamespace(ctx context.Context, e steps.Env) (any, error) {
	m, err := idMap(ctx, e)
	if err != nil {
		return nil, err
	}
	return m.GetNamespace(), nil
}

func clusterID(ctx context.Context, e steps.Env) (any, error) {
	m, err := idMap(ctx, e)
	if err != nil {
		return nil, err
	}
	id := text(m, "data", "CLUSTER_ID")
	if len(validation.IsDNS1123Label(id)) > 0 {
		return nil, steps.Absent("the %s has no valid cluster id", e.SideName())
	}
	return id, nil
}

func liqoSpace(e steps.Env) (string, error) { return e.Own.Text("liqo-namespace") }

func controllerManager(ctx context.Context, e steps.Env) (*appsv1.Deployment, error) {
	return liqoDeployment(ctx, e, managerEnding)
}

// liqoDeployment returns Liqo's Deployment whose name ends in ending. The beginning of the name depends on the chart's
// nameOverride.
func liqoDeployment(ctx context.Context, e steps.Env, ending string) (*appsv1.Deployment, error) {
	ns, err := liqoSpace(e)
	if err != nil {
		return nil, err
	}
	return deploymentIn(ctx, e, ns, ending)
}

func deploymentIn(ctx context.Context, e steps.Env, ns, ending string) (*appsv1.Deployment, error) {
	all, err := e.Cluster.List(ctx, check.Deployments, ns, cluster.Selector{})
	if err != nil {
		return nil, err
	}
	var found *unstructured.Unstructured // the first one by name
	for _, d := range all {
		if strings.HasSuffix(d.GetName(), "-"+ending) && (found == nil || d.GetName() < found.GetName()) {
			found = d
		}
	}
	if found == nil {
		return nil, steps.Absent("namespace %s of the %s has no Deployment liqo-%s", ns, e.SideName(), ending)
	}
	return check.As[appsv1.Deployment](found)
}

// liqoVersion returns the tag of the controllers' image, such as "v1.2.0".
func liqoVersion(ctx context.Context, e steps.Env) (any, error) {
	d, err := controllerManager(ctx, e)
	if err != nil {
		return nil, err
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		if _, tag := check.SplitImage(c.Image); tag != "" {
			return tag, nil
		}
	}
	return nil, steps.Absent("the image of Deployment %s has no tag", d.Name)
}

// module reports whether a Liqo module is enabled. A module is enabled unless the controllers have the flag
// --NAME-enabled=false.
func module(ctx context.Context, e steps.Env, name string) (bool, error) {
	d, err := controllerManager(ctx, e)
	if err != nil {
		return false, err
	}
	value, _ := flagOf(d, name+"-enabled")
	return value != "false", nil
}

// flagOf returns the value of a flag in the form --FLAG=VALUE, and whether a container of the Deployment has the flag.
func flagOf(d *appsv1.Deployment, flag string) (string, bool) {
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, arg := range slices.Concat(c.Command, c.Args) {
			if value, ok := strings.CutPrefix(arg, "--"+flag+"="); ok {
				return value, true
			}
		}
	}
	return "", false
}

func networkingOn(ctx context.Context, e steps.Env) (any, error) {
	on, err := module(ctx, e, "networking")
	return on, err
}

// cidrs returns a Learn function for the sorted CIDRs of the cluster's own Networks. kind is the type of the Networks.
func cidrs(kind string) func(context.Context, steps.Env) (any, error) {
	return func(ctx context.Context, e steps.Env) (any, error) {
		found, err := ownNetworks(ctx, e, kind)
		if err != nil {
			return nil, err
		}
		var out []string
		for _, n := range found {
			if c := text(n, "status", "cidr"); c != "" {
				out = append(out, c)
			}
		}
		if len(out) == 0 {
			return nil, steps.Absent("the %s has no Network of type %s with an address range", e.SideName(), kind)
		}
		slices.Sort(out)
		return out, nil
	}
}

func ownNetworks(ctx context.Context, e steps.Env, kind string) ([]*unstructured.Unstructured, error) {
	ns, err := liqoSpace(e)
	if err != nil {
		return nil, err
	}
	return living(ctx, e, networks, ns, networkTypeLabel+"="+kind)
}
