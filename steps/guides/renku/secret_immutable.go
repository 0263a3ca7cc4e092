package renku

import (
	"context"
	"regexp"

	"carrick/steps"
	"carrick/steps/check"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// immutableSecret reports whether the kubeconfigs Secret exists and is immutable. The keys of an
// immutable Secret cannot be changed, and pods keep the old values (kubernetes/website:
// content/en/docs/concepts/configuration/secret.md).
func immutableSecret(ctx context.Context, e steps.Env) (bool, error) {
	ns, name := secretWhere(e)
	o, err := e.Cluster.Get(ctx, check.Secrets, ns, name)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && isImmutable(o), err
}

func isImmutable(o *unstructured.Unstructured) bool {
	is, _, _ := unstructured.NestedBool(o.Object, "immutable")
	return is
}

// recreateSecret returns the command that recreates the kubeconfigs Secret as a mutable Secret. The
// command keeps the other keys and omits the link's own key. Apply then writes this key again, so
// that undo can remove it.
func recreateSecret(ctx context.Context, e steps.Env) string {
	ns, name := secretWhere(e)
	key := e.Answers.Text("cluster.config-name")
	edit := "-e '/^immutable: true$/d'"
	e.Action = "secret"
	if fields, err := secretFields(ctx, e); err == nil && !ownedByOthers(fields, key, e.Manager()) {
		edit += " -e " + steps.Quoted("/^  "+regexp.QuoteMeta(key)+": /d")
	}
	at := e.Kubectl() + " -n " + ns
	return at + " get secret " + steps.Quoted(name) + " -o yaml | sed " + edit + " | " + at + " replace --force -f -"
}
