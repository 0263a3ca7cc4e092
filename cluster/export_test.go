package cluster

import (
	"k8s.io/client-go/rest"

	"carrick/cluster/kubeconfig"
)

// NewAccess is like New, with the fields of Access that do not concern kubeconfigs.
func NewAccess(cfg *rest.Config, a kubeconfig.Access, o Options) (*Cluster, error) {
	return open(cfg, a, o, nil)
}
