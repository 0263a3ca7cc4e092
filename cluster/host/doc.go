// Package host is one machine as carrick sees it: files below a root folder,
// commands, and the clusters that kubeconfigs on it lead to. What is read is
// noted in the trace of its context, as reads of clusters are. Package cluster
// does not know it.
package host
