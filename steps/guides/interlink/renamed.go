package interlink

// renamed maps the check names of earlier versions to the current names.
var renamed = map[string]string{
	"account-modest":        "account-permissions",
	"account-there":         "account-exists",
	"asked-through":         "requests-pass",
	"cert-manager-there":    "cert-manager-ready",
	"certificate-lasts":     "certificate-lifetime",
	"certificate-lives":     "certificate-max-lifetime",
	"ingress-there":         "ingress-exists",
	"issuer-beside":         "issuer-namespace",
	"kubelet-mints":         "kubelet-creates-tokens",
	"kubelet-mints-no-more": "kubelet-least-privilege",
	"log-quiet":             "no-tokens-in-log",
	"may-make":              "admin-permissions",
	"proxy-fenced":          "proxy-sources",
	"rules-same":            "permissions-kept",
	"token-life":            "token-lifetime",
}
