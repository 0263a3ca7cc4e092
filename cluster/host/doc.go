// Package host accesses one machine: its files below a root directory, its commands, and the clusters in its
// kubeconfigs. The trace of a read's context records the read, as in package cluster. Package cluster does not depend
// on package host.
package host
