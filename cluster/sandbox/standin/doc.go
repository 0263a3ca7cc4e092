// Package standin plays the programs of a cluster that cannot run without
// container images, a file each. They run in the sandbox's own process.
package standin
