package lines

import _ "embed"

// Readme is the README of the wizard in lines of text; carrick help shows it.
//
//go:embed README.md
var Readme string
