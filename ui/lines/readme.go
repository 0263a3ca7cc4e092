package lines

import _ "embed"

// Readme is the README of the line-based wizard. The command carrick help shows it.
//
//go:embed README.md
var Readme string
