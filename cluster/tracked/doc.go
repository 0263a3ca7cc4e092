// Package tracked records the reads of a context (Trace), and waits until the result of one changes. A result that
// cannot be watched is cached as a look, which expires at a certain age. The package does not depend on clusters or
// hosts: a source is anything that has a Version.
package tracked
