package kubeconfig

import (
	"io"
	"time"
)

// Access describes how to reach a cluster, in kubectl's terms.
type Access struct {
	Kubeconfig string        // path, may start with ~/; "": $KUBECONFIG (merged), then ~/.kube/config
	Context    string        // "": the current context
	As         string        // user to impersonate
	AsGroups   []string      // groups to impersonate
	Timeout    time.Duration // of one request; 0: 10 s
	Stderr     io.Writer     // where exec plugins and the API server's warnings write; nil: discarded
	// FromFile means that a file named the kubeconfig, not the user. Such a kubeconfig must not run programs or read token
	// files, because its server would receive the content. Kubeconfigs in ~/.kube or in $KUBECONFIG are the user's own,
	// and exempt.
	FromFile bool
}
