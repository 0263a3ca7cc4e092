// Package cluster accesses one Kubernetes cluster. It connects to the cluster, reads objects and keeps them current,
// tracks which reads a caller used, checks permissions, and changes objects. Package failure defines its errors.
// Package tracked defines traces and looks. Package kubeconfig reads kubeconfigs.
//
// A read (Get, List, Secret) is served from a store that a watch keeps current. The tracked.Trace in its context
// records the read, so that the caller can wait until the result changes. A result that cannot be watched is cached as
// a look, which has a maximum age.
//
// The package does not depend on guides, steps or sides. It prints nothing and never exits the process.
package cluster
