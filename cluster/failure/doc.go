// Package failure is what can go wrong with a cluster: the errors that reads and
// changes return, and each of them in one plain sentence (Explain).
package failure
