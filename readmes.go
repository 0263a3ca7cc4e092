// Package readmes holds the READMEs of the module's folders. carrick help shows parts of them.
package readmes

import "embed"

// FS holds the READMEs, each under its path from the root of the module.
//
//go:embed README.md cmd/*/README.md steps/README.md steps/*/README.md ui/README.md ui/*/README.md cluster/README.md
var FS embed.FS
