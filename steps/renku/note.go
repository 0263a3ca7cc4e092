package renku

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/steps"
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// What this link made in Renku is noted on the local Secret with the
// kubeconfigs: Renku's own records have no place for a mark. Undo takes back
// what is noted there and nothing else.
const (
	noteCluster = "carrick/cluster-id." // + link: the cluster's ULID
	notePool    = "carrick/pool-id."    // + link: the pool's number
)

// noteAsked is noted before Renku is asked to make something. Whoever finds it
// later knows that an answer was lost, and that what stands there is ours.
const noteAsked = "asked"

// noteHolder names the Secret, for the rights and the texts.
func noteHolder(e steps.Env) (namespace, name string, err error) {
	if namespace, name = secretWhere(e); name == "" {
		return "", "", steps.Absent("nothing is answered for secret.name")
	}
	return namespace, name, nil
}

// noted reads a note; "" is none. It reads metadata alone, and afresh.
func noted(ctx context.Context, e steps.Env, prefix string) (string, error) {
	ns, name, err := noteHolder(e)
	if err != nil {
		return "", err
	}
	found, err := e.Cluster.Find(ctx, secrets, ns, cluster.Selector{Fields: "metadata.name=" + name})
	if err != nil {
		return "", fmt.Errorf("look for what this link noted on Secret %s/%s: %w", ns, name, err)
	}
	if len(found) == 0 {
		return "", steps.Absent("there is no Secret %s/%s", ns, name)
	}
	return found[0].Annotations[prefix+e.Link], nil
}

// note writes a note, or takes it away (""). A Secret that is gone has no
// notes.
func note(ctx context.Context, e steps.Env, prefix, value string) error {
	ns, name, err := noteHolder(e)
	if err != nil {
		return err
	}
	var v any = value
	if value == "" {
		v = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{prefix + e.Link: v}}})
	if err != nil {
		return err
	}
	_, err = e.Cluster.Patch(ctx, secrets, ns, name, patch, cluster.PatchOptions{Manager: "carrick." + e.Link + "." + e.Action})
	if value == "" && apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("note on Secret %s/%s what this link makes in Renku: %w", ns, name, err)
	}
	return nil
}

// noteRights are what it takes to note and to look.
func noteRights(e steps.Env) []cluster.Right {
	ns, name, err := noteHolder(e)
	if err != nil {
		return nil
	}
	return []cluster.Right{
		{Verb: "list", Resource: "secrets", Namespace: ns},
		{Verb: "patch", Resource: "secrets", Namespace: ns, Name: name},
	}
}

// noteForUndo reads a note where a Secret that is gone means that nothing is
// left to take back.
func noteForUndo(ctx context.Context, e steps.Env, prefix string) (string, error) {
	id, err := noted(ctx, e, prefix)
	if errors.As(err, new(*steps.AbsentError)) {
		return "", nil
	}
	return id, err
}
