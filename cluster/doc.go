// Package cluster accesses one Kubernetes cluster: it connects, reads objects and keeps them current, tracks which
// reads a caller used, checks permissions, and changes objects. Its errors are in package failure, traces and looks in
// package tracked, kubeconfigs in package kubeconfig.
//
// A read (Get, List, Secret) is served from a store that a watch keeps current. It is noted in the tracked.Trace of its
// context, so that the caller can wait until the result changes. A result that cannot be watched is cached as a look,
// which expires at a certain age.
//
// The package does not depend on guides, steps or sides, prints nothing and never exits.
package cluster
