// Package tracked records what was read under a context (Trace), and waits until some of it changes. A result that
// cannot be watched is kept as a look, with an age. The package does not depend on clusters or hosts: a source is
// anything that has a Version.
package tracked
