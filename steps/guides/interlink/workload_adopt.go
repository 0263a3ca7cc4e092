package interlink

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

// createdHere returns the object with the given name that this link created in any namespace, or nil if there is none.
// It ignores objects with this name that the link did not create, because any user can create one in their own
// namespace, even with carrick's labels.
func createdHere(
	ctx context.Context, e steps.Env, at schema.GroupVersionResource, name string,
) (*unstructured.Unstructured, error) {
	all, err := e.Cluster.List(ctx, at, "", cluster.Selector{Fields: "metadata.name=" + name})
	if err != nil {
		return nil, err
	}
	c, err := sift(ctx, e, all)
	if err != nil || len(c.mine) == 0 {
		return nil, err
	}
	return c.mine[0], nil
}

// adoptWorkload returns a function that adopts the ServiceAccount of the recorded requests if account is true, and its
// namespace otherwise. The namespace in the record must be the namespace of the record's ConfigMap.
func adoptWorkload(account bool) func(context.Context, steps.Env) (any, string, error) {
	return func(ctx context.Context, e steps.Env) (any, string, error) {
		o, err := createdHere(ctx, e, check.ConfigMaps, recordName(e, "asked"))
		if err != nil || o == nil {
			return nil, "", err
		}
		m, err := check.As[corev1.ConfigMap](o)
		if err != nil {
			return nil, "", err
		}
		var r apiReply
		if err := yaml.Unmarshal([]byte(m.Data["asked.yaml"]), &r); err != nil {
			return nil, "", nil // a check reports the invalid record
		}
		who := strings.Split(r.Account, ":")
		if len(who) != 4 || who[2] != m.Namespace {
			return nil, "", nil
		}
		if account {
			return who[3], "the requests recorded in ConfigMap " + m.Namespace + "/" + m.Name, nil
		}
		return who[2], "the requests recorded in ConfigMap " + m.Namespace + "/" + m.Name, nil
	}
}

// adoptArgo returns true if this link's Role for Argo exists, and nil otherwise.
func adoptArgo(ctx context.Context, e steps.Env) (any, string, error) {
	r, err := createdHere(ctx, e, check.Roles, recordName(e, "argo"))
	if err != nil || r == nil {
		return nil, "", err
	}
	return true, "Role " + r.GetNamespace() + "/" + r.GetName(), nil
}
