// Package standin contains fakes of cluster programs whose container images the sandbox cannot run. The fakes run in
// the sandbox's own process.
package standin
