package facts

import _ "embed"

// Readme is the README of facts files; carrick help shows it.
//
//go:embed README.md
var Readme string
