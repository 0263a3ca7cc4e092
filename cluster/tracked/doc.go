// Package tracked records what was read under a context (Trace), and waits until
// something of it differs. What can't be watched is kept as a look, with an age.
// It knows neither clusters nor hosts: a source is what has a Version.
package tracked
