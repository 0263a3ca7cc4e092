package interlink

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

var rolesKind = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}

// askedOf is the ConfigMap of what was asked for this link, wherever it stands;
// nil: nothing was.
func askedOf(ctx context.Context, e steps.Env) (*corev1.ConfigMap, error) {
	all, err := check.List[corev1.ConfigMap](ctx, e.Cluster, check.ConfigMaps, "", cluster.Selector{Fields: "metadata.name=" + recordName(e, "asked")})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

// adoptWorkload is the namespace or the ServiceAccount as which something was asked.
func adoptWorkload(account bool) func(context.Context, steps.Env) (any, string, error) {
	return func(ctx context.Context, e steps.Env) (any, string, error) {
		m, err := askedOf(ctx, e)
		if err != nil || m == nil {
			return nil, "", err
		}
		var r asked
		if err := yaml.Unmarshal([]byte(m.Data["asked.yaml"]), &r); err != nil {
			return nil, "", nil // a check says what is wrong with it
		}
		who := strings.Split(r.Account, ":")
		if len(who) != 4 {
			return nil, "", nil
		}
		if account {
			return who[3], "what was asked as it: ConfigMap " + m.Namespace + "/" + m.Name, nil
		}
		return who[2], "what was asked there: ConfigMap " + m.Namespace + "/" + m.Name, nil
	}
}

// adoptArgo tells whether the Role for Argo stands.
func adoptArgo(ctx context.Context, e steps.Env) (any, string, error) {
	all, err := check.List[rbacv1.Role](ctx, e.Cluster, rolesKind, "", cluster.Selector{Fields: "metadata.name=" + recordName(e, "argo")})
	if err != nil || len(all) == 0 {
		return nil, "", err
	}
	return true, "Role " + all[0].Namespace + "/" + all[0].Name, nil
}
