package cluster

import (
	"k8s.io/client-go/rest"

	"carrick/cluster/kubeconfig"
)

// NewAccess is New with the parts of Access that are not about kubeconfigs.
func NewAccess(cfg *rest.Config, a kubeconfig.Access, o Options) (*Cluster, error) {
	return open(cfg, a, o, nil)
}
