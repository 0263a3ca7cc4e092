package liqo

// renamed maps the names of checks and answers in earlier carrick versions to their current names.
var renamed = map[string]string{
	"api-server-seen":   "peer-api-reachable",
	"certificate-lasts": "certificate-lifetime",
	"certificate-sound": "certificate-valid",
	"credential-least":  "least-privilege",
	"kinds-served":      "crds-installed",
	"kubeconfig-whole":  "kubeconfig-self-contained",
	"liqo-runs":         "liqo-ready",
	"may-peer":          "admin-permissions",
	"modules-on":        "modules-enabled",
	"network.join":      "network.enabled",
	"networks-known":    "address-ranges",
	"older-pods":        "pods-before-offloading",
	"provider-room":     "provider-capacity",
	"quota-room":        "quota-free",
	"request-sound":     "request-valid",
	"resources.more":    "resources.other",
}
