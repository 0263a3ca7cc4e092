// Package standin fakes the programs of a cluster that cannot run without container images, one file each. The fakes
// run in the sandbox's own process.
package standin
