package kubeconfig

import (
	"io"
	"time"
)

// Access specifies how to connect to a cluster, like kubectl's flags.
type Access struct {
	Kubeconfig string        // path, can start with ~/; "": $KUBECONFIG (merged), or else ~/.kube/config
	Context    string        // "": the current context
	As         string        // user to impersonate
	AsGroups   []string      // groups to impersonate
	Timeout    time.Duration // limit for one request; 0: 10 s
	Stderr     io.Writer     // output of exec plugins, and warnings of the API server; nil: discarded
	// FromFile means that the path of the kubeconfig comes from a file and not from the user. Such a kubeconfig must not
	// run programs or read token files, because its server would receive their output or content. Kubeconfigs in ~/.kube
	// or in $KUBECONFIG are exempt, because they belong to the user.
	FromFile bool
}
