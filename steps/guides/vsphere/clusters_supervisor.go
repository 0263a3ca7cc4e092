package vsphere

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/kubeconfig"
	"carrick/steps"
	"carrick/steps/check"
)

// Groups and resources of the kinds that declare guest clusters on a Supervisor. TKG Service 3.3 removed the older
// kind, TanzuKubernetesCluster. Each TanzuKubernetesCluster generates a Cluster with the same name. Users must change
// that Cluster through the TanzuKubernetesCluster.
const (
	tkcGroup, tkcResource   = "run.tanzu.vmware.com", "tanzukubernetesclusters"
	capiGroup, capiResource = "cluster.x-k8s.io", "clusters"
)

// guest is a guest cluster that a Supervisor declares.
type guest struct {
	resource        string // "tanzukubernetesclusters.run.tanzu.vmware.com"
	namespace, name string
	endpoint        string   // host:port of the API server; "": not assigned yet
	class           string   // default StorageClass; "": none
	classes         []string // StorageClasses assigned to the guest
	version         string
	classField      string // field that declares the default StorageClass
}

func (g guest) String() string { return g.namespace + "/" + g.name }

// guests returns the guest clusters in the namespace supervisor.namespace, or in all namespaces if
// that answer is empty.
func guests(ctx context.Context, e steps.Env) ([]guest, error) {
	var out []guest
	for _, kind := range []struct {
		group, resource string
		read            func(*unstructured.Unstructured) guest
	}{{tkcGroup, tkcResource, fromTKC}, {capiGroup, capiResource, fromCluster}} {
		versions, err := served(ctx, e, kind.group, kind.resource)
		if err != nil {
			return nil, err
		}
		if len(versions) == 0 {
			continue
		}
		found, err := e.Cluster.List(ctx, versions[0].GVR, e.Answers.Text("supervisor.namespace"), cluster.Selector{})
		if err != nil {
			return nil, err
		}
		for _, o := range found {
			g := kind.read(o)
			g.resource, g.namespace, g.name = kind.resource+"."+kind.group, o.GetNamespace(), o.GetName()
			out = joined(out, g)
		}
	}
	return out, nil
}

// joined adds g to all. If all already contains a guest with the same namespace and name, joined fills in that guest's
// missing endpoint and version instead.
func joined(all []guest, g guest) []guest {
	i := slices.IndexFunc(all, func(other guest) bool { return other.namespace == g.namespace && other.name == g.name })
	if i < 0 {
		return append(all, g)
	}
	all[i].endpoint = cmp.Or(all[i].endpoint, g.endpoint)
	all[i].version = cmp.Or(all[i].version, g.version)
	return all
}

func fromTKC(o *unstructured.Unstructured) guest {
	g := guest{classField: "spec.settings.storage.defaultClass"}
	g.class = textAt(o.Object, "spec", "settings", "storage", "defaultClass")
	g.classes, _, _ = unstructured.NestedStringSlice(o.Object, "spec", "settings", "storage", "classes")
	g.version = cmp.Or(
		textAt(o.Object, "spec", "topology", "controlPlane", "tkr", "reference", "name"),
		textAt(o.Object, "spec", "distribution", "fullVersion"), textAt(o.Object, "spec", "distribution", "version"),
	)
	for _, path := range [][]string{{"status", "apiEndpoints"}, {"status", "clusterApiStatus", "apiEndpoints"}} {
		points, _, _ := unstructured.NestedSlice(o.Object, path...)
		if len(points) > 0 {
			g.endpoint = endpointOf(points[0])
			break
		}
	}
	return g
}

// fromCluster reads a guest from a Cluster. It supports the variables of two ClusterClasses: tanzukubernetescluster,
// which belongs to TKG, and builtin-generic from v3.1 on.
func fromCluster(o *unstructured.Unstructured) guest {
	g := guest{
		classField: "spec.topology.variables, defaultStorageClass", version: textAt(o.Object, "spec", "topology", "version"),
	}
	if at, found, _ := unstructured.NestedMap(o.Object, "spec", "controlPlaneEndpoint"); found {
		g.endpoint = endpointOf(at)
	}
	variables, _, _ := unstructured.NestedSlice(o.Object, "spec", "topology", "variables")
	for _, v := range variables {
		variable, _ := v.(map[string]any)
		switch value := variable["value"].(type) {
		case string:
			if variable["name"] == "defaultStorageClass" {
				g.class = value
			}
		case []any:
			if variable["name"] == "storageClasses" {
				g.classes, _, _ = unstructured.NestedStringSlice(variable, "value")
			}
		case map[string]any:
			if variable["name"] == "vsphereOptions" {
				g.classField = "spec.topology.variables, vsphereOptions.persistentVolumes.defaultStorageClass"
				g.class = textAt(value, "persistentVolumes", "defaultStorageClass")
				g.classes, _, _ = unstructured.NestedStringSlice(value, "persistentVolumes", "availableStorageClasses")
			}
		}
	}
	return g
}

func textAt(o map[string]any, path ...string) string {
	v, _, _ := unstructured.NestedString(o, path...)
	return v
}

// endpointOf formats a Cluster API endpoint, such as {host: 10.0.0.1, port: 6443}, as host:port.
// The default port is 6443. It returns "" if the endpoint has no host.
func endpointOf(v any) string {
	at, _ := v.(map[string]any)
	host, _ := at["host"].(string)
	if host == "" {
		return ""
	}
	port := 6443
	switch n := at["port"].(type) {
	case int64:
		port = int(n)
	case float64:
		port = int(n)
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// guestServer returns the address of the API server in the guest's context, or "" if it is unknown.
func guestServer(f steps.Facts) string {
	server, err := f.Text(check.ServerFact)
	if err != nil {
		return ""
	}
	where, _ := check.ServerOf(kubeconfig.Config{Server: server})
	return where
}

// theGuest returns the guest cluster that supervisor.cluster names. If that answer is empty, theGuest returns the guest
// with the address in the guest's context, or the only guest. supervisor.cluster has no such default, because questions
// about the guest would then depend on a Supervisor that might not respond.
func theGuest(ctx context.Context, e steps.Env) (guest, error) {
	name := e.Answers.Text("supervisor.cluster")
	all, err := guests(ctx, e)
	if err != nil {
		return guest{}, err
	}
	at := guestServer(e.Peer)
	var found []guest
	for _, g := range all {
		if name != "" && g.name == name || name == "" && (len(all) == 1 || at != "" && g.endpoint == at) {
			found = append(found, g)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return guest{}, steps.Absent("%s", noGuest(all, name))
	}
	return guest{}, steps.Absent("%d guest clusters are named %s: set supervisor.namespace", len(found), found[0].name)
}

// noGuest returns the error message for a guest cluster that does not exist or cannot be identified. The message lists
// the existing guests.
func noGuest(all []guest, name string) string {
	var names []string
	for _, g := range all {
		names = append(names, clean.Text(g.String()))
	}
	there := "the Supervisor lists no guest clusters"
	if len(names) > 0 {
		there = "the Supervisor lists " + check.Some(names)
	}
	if name == "" {
		return "carrick cannot identify the guest cluster: " + there
	}
	return fmt.Sprintf("guest cluster %s does not exist: %s", name, there)
}

func declaredClassFact(ctx context.Context, e steps.Env) (any, error) {
	g, err := theGuest(ctx, e)
	if err != nil {
		return nil, err
	}
	if g.class == "" {
		return nil, steps.Absent("the Supervisor declares no default StorageClass for %s", g)
	}
	return clean.Text(g.class), nil
}

func declaredVersionFact(ctx context.Context, e steps.Env) (any, error) {
	g, err := theGuest(ctx, e)
	if err != nil {
		return nil, err
	}
	if g.version == "" {
		return nil, steps.Absent("the Supervisor declares no version for %s", g)
	}
	return clean.Text(strings.ReplaceAll(g.version, "---", "+")), nil
}
