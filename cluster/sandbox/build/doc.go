// Package build contains the scripts with which the Makefiles build carrick and the sandbox. The Go package exists for
// their tests.
package build
