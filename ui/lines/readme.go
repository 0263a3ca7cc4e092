package lines

import _ "embed"

// Readme is the README of the line-based wizard; carrick help shows it.
//
//go:embed README.md
var Readme string
