package kubeconfig

import (
	"cmp"
	"slices"
)

// Context is one context of a kubeconfig.
type Context struct {
	Name, Cluster, User, Namespace, Server string

	Current bool // the current context
}

// Contexts returns the contexts of the kubeconfig at the given path, sorted by name. If the path is "", it returns
// those of the kubeconfigs that kubectl would read. It starts no program and makes no request.
func Contexts(kubeconfig string) ([]Context, error) {
	merged, err := merge(atHome(kubeconfig))
	if err != nil {
		return nil, err
	}
	contexts := make([]Context, 0, len(merged.Contexts))
	for name, context := range merged.Contexts {
		found := Context{
			Name:      name,
			Cluster:   context.Cluster,
			User:      context.AuthInfo,
			Namespace: context.Namespace,
			Current:   name == merged.CurrentContext,
		}
		if at := merged.Clusters[context.Cluster]; at != nil {
			found.Server = at.Server
		}
		contexts = append(contexts, found)
	}
	slices.SortFunc(contexts, func(a, b Context) int { return cmp.Compare(a.Name, b.Name) })
	return contexts, nil
}
