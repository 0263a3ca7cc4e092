// Package kubeconfig reads kubeconfigs. Load and Contexts read the user's own kubeconfigs by kubectl's rules. Parse
// reads a kubeconfig that another user created, strictly: it runs no program, reads no file and uses no environment.
// ParseReferring reads files only through a function of the caller.
package kubeconfig
