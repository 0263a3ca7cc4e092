// Package cluster accesses one Kubernetes cluster. It connects to the cluster, reads objects and keeps them current,
// tracks which reads a caller used, checks permissions, and changes objects. Package failure defines its errors.
// Package tracked records reads and caches results that cannot be watched. Package kubeconfig reads kubeconfigs.
//
// A read (Get, List, Secret) is served from a store that a watch keeps current. The tracked.Trace in its context
// records the read, so that the caller can wait until the result changes. A result that cannot be watched is cached
// with a maximum age (see tracked.Look).
//
// The package does not depend on guides, steps or sides. It prints nothing and never exits the process.
package cluster
