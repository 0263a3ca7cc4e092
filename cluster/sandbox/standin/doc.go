// Package standin contains fakes of cluster programs that would need container images to run, one file per program. The
// fakes run in the sandbox's own process.
package standin
