// Package tracked records the reads of a context (Trace), and waits until the result of a read changes. A result that
// cannot be watched is cached with a maximum age (see Look). The package does not depend on clusters or hosts: any type
// with a Version can be a source.
package tracked
