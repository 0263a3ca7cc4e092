// Package build holds the scripts that the Makefiles build carrick and the sandbox with. It is there for their tests.
package build
