package ui

import _ "embed"

// Readme is the README of the interactive wizard. The command carrick help shows parts of it.
//
//go:embed README.md
var Readme string
