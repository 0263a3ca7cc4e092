package vsphere

// renamed maps former names of checks and questions to their current names.
var renamed = map[string]string{
	"class-keeps":   "reclaim-policy",
	"may-make":      "admin-permissions",
	"mutation.by":   "mutation.method",
	"mutation.fail": "mutation.failure-policy",
	"mutation.from": "mutation.replaces",
	"policy-there":  "policy-exists",
	"profile.try":   "profile.test",
	"storage.try":   "storage.test",
}
