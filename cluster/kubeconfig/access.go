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
	// FromFile means that a file named the kubeconfig, and not the user. Unless it is one of the user's own, in ~/.kube or
	// in $KUBECONFIG, it may run no program and read no token file, because its server would receive the content.
	FromFile bool
}
