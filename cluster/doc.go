// Package cluster is one Kubernetes cluster as carrick sees it: how to reach
// it, reads that stay current and remember who used them, what may be done
// there, what is changed there, and errors in plain words. It is also one
// host: files and commands.
//
// A read (Get, List, Secret) is served from a store that a watch keeps
// current, and is noted in the Trace of its context, so that whoever used it
// can wait until it differs. What can't be watched is kept as a Look, with an
// age.
//
// The package knows no guide, step or side, prints nothing and never exits.
package cluster
