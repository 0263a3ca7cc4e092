package cluster

import _ "embed"

// Readme is the README of this package. carrick help shows parts of it.
//
//go:embed README.md
var Readme string
