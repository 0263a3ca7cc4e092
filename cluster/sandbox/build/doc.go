// Package build contains the scripts that build carrick and the sandbox. It is a Go package so that the scripts can
// have tests.
package build
