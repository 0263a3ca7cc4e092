// Package cluster is one Kubernetes cluster as carrick sees it: how to reach
// it, reads that stay current and remember who used them, what may be done
// there, and what is changed there. Its errors are in package failure, traces
// and looks in package tracked, kubeconfigs in package kubeconfig.
//
// A read (Get, List, Secret) is served from a store that a watch keeps
// current, and is noted in the tracked.Trace of its context, so that whoever used it
// can wait until it differs. What can't be watched is kept as a look, with an
// age.
//
// The package knows no guide, step or side, prints nothing and never exits.
package cluster
