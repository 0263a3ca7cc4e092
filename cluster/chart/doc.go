// Package chart reads, renders, installs and removes Helm charts on one cluster.
//
// Reading installed releases (Releases, Find) does not use Helm. Helm stores a release in a Secret, and this package
// reads the Secret with package cluster's tracked reads. A check that uses a release therefore runs again when the
// release changes. The rest of this package is the only code in carrick that imports Helm's SDK.
package chart
