package argocd

// renamed maps names of earlier versions to today's.
var renamed = map[string]string{
	"may-make":       "admin-permissions",
	"nothing-beyond": "least-privilege",
}
