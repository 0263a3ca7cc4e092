// Package host accesses one machine: files below a root folder, commands, and the clusters in its kubeconfigs. Reads
// are noted in the trace of their context, as reads of clusters are. Package cluster does not depend on it.
package host
