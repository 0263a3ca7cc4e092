package renku

// renamed maps the names of checks in earlier versions to their current names.
var renamed = map[string]string{
	"accounts-within":     "accounts-least-privilege",
	"annotations-text":    "annotations-valid",
	"custom-cas-there":    "custom-cas-exist",
	"framing-fenced":      "framing-restricted",
	"may-hand-over":       "secret-permissions",
	"may-prepare":         "admin-permissions",
	"metadata-fenced":     "metadata-blocked",
	"pool-made":           "pool-exists",
	"reached-from-inside": "reachable-from-pods",
	"session-made":        "session-reconciled",
	"stored-is-proved":    "stored-is-tested",
	"token-lasts":         "token-lifetime",
	"two-sites":           "frame-cookies",
}
