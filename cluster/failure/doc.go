// Package failure defines the errors that reads and changes of a cluster return, and explains each of them in one
// sentence (Explain).
package failure
