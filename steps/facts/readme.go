package facts

import _ "embed"

// Readme is the README about facts files. The command carrick help shows it.
//
//go:embed README.md
var Readme string
