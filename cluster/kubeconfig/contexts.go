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

// Contexts returns the contexts of a kubeconfig, sorted by name. If kubeconfig is "", it returns the contexts of the
// files that kubectl would read. It runs no program and sends no request.
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
