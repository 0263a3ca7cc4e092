// Package kubeconfig reads kubeconfigs. Load and Contexts read the user's own kubeconfigs by kubectl's rules. Parse
// reads a kubeconfig from another user strictly: it runs no program, reads no file and uses no environment variables.
// ParseReferring also reads files, but only through a function of the caller.
package kubeconfig
