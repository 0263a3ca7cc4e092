package argocd

// renamed maps names of checks and answers in earlier versions to the current names.
var renamed = map[string]string{
	"may-make":       "admin-permissions",
	"nothing-beyond": "least-privilege",
}
