// Package assets embeds what the guides write: manifests, payloads and files,
// a folder a guide. It contains no logic; placeholders such as
// ${answers.sessions.namespace} are resolved by package action, after parsing.
package assets

import "embed"

// FS holds one folder a guide.
//
//go:embed all:argocd all:interlink all:liqo all:ondemand all:renku all:vsphere
var FS embed.FS
