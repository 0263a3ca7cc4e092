// Package chart reads, renders, installs and removes Helm charts on one cluster.
//
// Reading installed releases (Releases, Find) does not use Helm: a release is a Secret, and package cluster's tracked
// reads read it, so that a check that uses it runs again when the release changes. The rest is the only code that
// imports Helm's SDK.
package chart
