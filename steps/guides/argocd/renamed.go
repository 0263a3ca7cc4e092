package argocd

// renamed maps the names of checks and answers in earlier carrick versions to their current names.
var renamed = map[string]string{
	"may-make":       "admin-permissions",
	"nothing-beyond": "least-privilege",
}
