// Package failure defines the errors that reads and changes of a cluster return. Explain describes each of them in one
// sentence.
package failure
