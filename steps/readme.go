package steps

import _ "embed"

// Readme is the README of the engine and the guides; carrick help shows parts of it.
//
//go:embed README.md
var Readme string
