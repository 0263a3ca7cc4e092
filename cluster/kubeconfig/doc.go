// Package kubeconfig reads kubeconfigs: the user's own by kubectl's rules (Load,
// Contexts), and one that another user created strictly (Parse). Parse runs no
// program, reads no file and uses no environment; ParseReferring reads files
// only by a function of the caller.
package kubeconfig
