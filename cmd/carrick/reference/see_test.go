package reference

import (
	"net/url"
	"slices"
	"testing"

	"carrick/cmd/carrick/guides"
)

func TestAddresses(t *testing.T) {
	t.Parallel()
	const data = "https://github.com/SwissDataScienceCenter/renku-data-services/"
	for note, want := range map[string][]string{
		"https://kubernetes.io/docs/x/#y":      {"https://kubernetes.io/docs/x/#y"},
		"liqotech/liqo#2692":                   {"https://github.com/liqotech/liqo/issues/2692"},
		"SwissDataScienceCenter/amalthea PR 1": {"https://github.com/SwissDataScienceCenter/amalthea/issues/1"},
		"kr8s-org/kr8s issue 737":              {"https://github.com/kr8s-org/kr8s/issues/737"},
		"liqotech/liqo: docs/usage/peer.md":    {"https://github.com/liqotech/liqo/blob/HEAD/docs/usage/peer.md"},
		"liqotech/liqo: pkg/webhooks/secretcontroller": {
			"https://github.com/liqotech/liqo/tree/HEAD/pkg/webhooks/secretcontroller",
		},
		"liqotech/liqo: pkg/utils/getters/k8sGetters.go (multiple Configurations found)": {
			"https://github.com/liqotech/liqo/blob/HEAD/pkg/utils/getters/k8sGetters.go",
		},
		"liqotech/liqo: pkg/webhooks/namespaceoffloading, pkg/webhooks/pod": {
			"https://github.com/liqotech/liqo/tree/HEAD/pkg/webhooks/namespaceoffloading",
			"https://github.com/liqotech/liqo/tree/HEAD/pkg/webhooks/pod",
		},
		"liqotech/liqo: deployments/liqo/templates/a.yaml, b.yaml": {
			"https://github.com/liqotech/liqo/blob/HEAD/deployments/liqo/templates/a.yaml",
			"https://github.com/liqotech/liqo/blob/HEAD/deployments/liqo/templates/b.yaml",
		},
		"SwissDataScienceCenter/renku-data-services: components/renku_data_services/k8s/config.py; kr8s-org/kr8s: " +
			"kr8s/_auth.py": {
			data + "blob/HEAD/components/renku_data_services/k8s/config.py",
			"https://github.com/kr8s-org/kr8s/blob/HEAD/kr8s/_auth.py",
		},
		"SwissDataScienceCenter/renku-data-services: components/renku_data_services (notebooks/core_sessions.py, " +
			"crc/api.spec.yaml)": {
			data + "blob/HEAD/components/renku_data_services/notebooks/core_sessions.py",
			data + "blob/HEAD/components/renku_data_services/crc/api.spec.yaml",
		},
		"SwissDataScienceCenter/amalthea: helm-chart/a/values.yaml; pull requests 1089 (closed), 1097": {
			"https://github.com/SwissDataScienceCenter/amalthea/blob/HEAD/helm-chart/a/values.yaml",
			"https://github.com/SwissDataScienceCenter/amalthea/issues/1089",
			"https://github.com/SwissDataScienceCenter/amalthea/issues/1097",
		},
		"SwissDataScienceCenter/amalthea: api/v1alpha1 (amaltheasession_children.go), internal/controller": {
			"https://github.com/SwissDataScienceCenter/amalthea/blob/HEAD/api/v1alpha1/amaltheasession_children.go",
			"https://github.com/SwissDataScienceCenter/amalthea/tree/HEAD/internal/controller",
		},
		"SwissDataScienceCenter/renku: helm-chart/renku/templates (data-service/deployment*.yaml, " +
			"secrets-storage/deployment.yaml)": {
			"https://github.com/SwissDataScienceCenter/renku/tree/HEAD/helm-chart/renku/templates/data-service",
			"https://github.com/SwissDataScienceCenter/renku/blob/HEAD/helm-chart/renku/templates/secrets-storage/deployment.yaml",
		},
		"kubernetes/ingress-nginx: internal/validators.go, issues 10501, 12648": {
			"https://github.com/kubernetes/ingress-nginx/blob/HEAD/internal/validators.go",
			"https://github.com/kubernetes/ingress-nginx/issues/10501",
			"https://github.com/kubernetes/ingress-nginx/issues/12648",
		},
		"SwissDataScienceCenter/amalthea: config/rbac (manager role)": {
			"https://github.com/SwissDataScienceCenter/amalthea/tree/HEAD/config/rbac",
		},
		"https://kubernetes.io/docs/a/#b (what it says)": {"https://kubernetes.io/docs/a/#b"},
		"what everybody knows":                           nil,
	} {
		if got := addresses(note); !slices.Equal(got, want) {
			t.Errorf("%s\n got %q\nwant %q", note, got, want)
		}
	}
}

// Every citation in every guide gives at least one address.
func TestSeeLeadsSomewhere(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, g := range guides.All() {
		for i := range g.Steps {
			for _, c := range g.Steps[i].Checks {
				for _, note := range c.References {
					found := addresses(note)
					if len(found) == 0 {
						t.Errorf("%s/%s: %q leads nowhere", g.Name, c.Name, note)
					}
					for _, address := range found {
						if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "https" {
							t.Errorf("%s/%s: %q is no address", g.Name, c.Name, address)
						}
						seen++
					}
				}
			}
		}
	}
	if seen == 0 {
		t.Fatal("no guide says where upstream says anything")
	}
}
