// Package chart reads, renders, installs and removes Helm charts on one cluster.
//
// Reading what is installed (Releases, Find) takes no Helm at all: a release is
// a Secret, and it is read by package cluster's tracked reads, so that a check
// which uses it is looked at again when the release changes. The rest is the
// one place where Helm's SDK is imported.
package chart
