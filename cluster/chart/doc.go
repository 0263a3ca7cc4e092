// Package chart reads, renders, installs and removes Helm charts on one cluster.
//
// Reading installed releases (Releases, Find) does not use Helm. A release is a Secret, and the tracked reads of
// package cluster read it, so a check that uses a release runs again when the release changes. The rest of this package
// is the only code in carrick that imports Helm's SDK.
package chart
