package steps

import _ "embed"

// Readme is the README of the guides and the engine. The command carrick help shows parts of it.
//
//go:embed README.md
var Readme string
