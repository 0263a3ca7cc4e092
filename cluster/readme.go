package cluster

import _ "embed"

// Readme is the README of clusters and hosts; carrick help shows parts of it.
//
//go:embed README.md
var Readme string
