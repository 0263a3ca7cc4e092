package interlink

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

// restartDoer restarts the virtual kubelet, once for each configuration.
type restartDoer struct{ action.Manifest }

// configAnnotation returns the name of an annotation of the pod template. Its value is the hash of the configuration
// that the pods must have read.
func configAnnotation(e steps.Env) string {
	const most = 63 // maximum length of an annotation's name after the slash
	name := "restarted." + e.Link
	return "carrick/" + name[:min(len(name), most)]
}

// Plan plans no restart if the virtual kubelet has started since its configuration was written.
func (d restartDoer) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	dep, _, err := theKubelet(ctx, e)
	if apierrors.IsNotFound(err) {
		return steps.Change{}, steps.Absent(
			"Deployment %s/%s does not exist; InterLink's chart creates it", vkNamespace(e), vkDeployment(e),
		)
	}
	if err != nil {
		return steps.Change{}, err
	}
	knows, err := hasReadConfig(ctx, e)
	if err != nil {
		return steps.Change{}, err
	}
	if knows {
		return steps.Change{
			Items: []steps.Item{
				{
					Verb: steps.Leave, What: "Deployment " + dep.Namespace + "/" + dep.Name,
					Note: "it started after its configuration was written",
				},
			},
		}, nil
	}
	return d.Manifest.Plan(ctx, e)
}

// Do restarts the virtual kubelet, unless it has started since its configuration was written.
func (d restartDoer) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	knows, err := hasReadConfig(ctx, e)
	if err != nil || knows {
		return err
	}
	return d.Manifest.Do(ctx, e, say)
}

// Undo restarts the virtual kubelet with the restored configuration. It first waits for the end of the second in which
// the configuration was written. Timestamps have a resolution of seconds, so a pod that started in the same second
// might have started before the write.
func (d restartDoer) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	if w, err := whenWritten(ctx, e); err == nil {
		if left := min(time.Until(w.Changed.Add(time.Second)), time.Second); left > 0 {
			select {
			case <-time.After(left):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	return d.Manifest.Undo(ctx, e, say)
}

// Export returns the kubectl commands that restart the virtual kubelet.
func (d restartDoer) Export(_ context.Context, e steps.Env) ([]action.Exported, error) {
	k := e.Kubectl() + " -n " + vkNamespace(e)
	return []action.Exported{
		{
			Hand: fmt.Sprintf(
				"%s rollout restart deployment %s\n%s rollout status deployment %s --timeout=5m", k, vkDeployment(e), k,
				vkDeployment(e),
			),
		},
	}, nil
}

// repeated is appended to the hash at every second restart for the same configuration, so that the annotation changes.
const repeated = ".again"

// again returns the annotation's next value for the same configuration.
func again(now, hash string) string {
	if now == hash {
		return hash + repeated
	}
	return hash
}

// isFor reports whether the annotation's value belongs to the configuration with the given hash.
func isFor(value, hash string) bool { return value == hash || value == hash+repeated }

// restartCause returns the annotation's value for the wanted configuration. The value stays the same while pods are
// being replaced. It changes if all pods have the annotation but have not read the latest text, because nothing else
// would restart the pods.
func restartCause(ctx context.Context, e steps.Env) (any, error) {
	text, err := wantedConfig(ctx, e)
	if err != nil {
		return nil, err
	}
	hash := steps.HashOf(text)
	dep, _, err := theKubelet(ctx, e)
	if err != nil {
		return hash, nil // Plan returns the error
	}
	now := dep.Spec.Template.Annotations[configAnnotation(e)]
	if !isFor(now, hash) {
		return hash, nil
	}
	pods, err := podsOfKubelet(ctx, e)
	if err != nil {
		return nil, err
	}
	rolling := slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Annotations[configAnnotation(e)] != now })
	knows, err := hasReadConfig(ctx, e)
	switch {
	case err != nil:
		return nil, err
	case knows, rolling, len(pods) == 0:
		return now, nil
	}
	return again(now, hash), nil
}

// hasReadConfig reports whether the virtual kubelet has read the wanted configuration: the ConfigMap contains it, and
// all pods have started since it was written.
func hasReadConfig(ctx context.Context, e steps.Env) (bool, error) {
	text, err := currentConfig(ctx, e)
	if err != nil {
		return false, err
	}
	want, err := wantedConfig(ctx, e)
	if err != nil || want != text {
		return false, err
	}
	s, err := startsOf(ctx, e, steps.HashOf(text))
	return err == nil && s.pods > 0 && len(s.old) == 0, err
}

// starts describes whether the virtual kubelet's pods have read a configuration.
type starts struct {
	check.Written
	pods int
	old  []string // descriptions of the pods that started before the last change
}

// startsOf lists the pods that have not read the configuration with the given hash. A pod has read it if the pod
// started after the last write, or if the pod's annotation has the hash and the pod was created after the last write.
// The annotation alone is not enough: if a helm upgrade replaces the text and carrick then restores it, older pods
// still have the same annotation.
func startsOf(ctx context.Context, e steps.Env, hash string) (starts, error) {
	var out starts
	pods, err := podsOfKubelet(ctx, e)
	if err != nil {
		return out, err
	}
	out.Written, err = tracked.Look(
		ctx, "config-written/"+e.Cluster.Server()+"/"+vkNamespace(e)+"/"+vkConfigMap(e)+"/"+hash, 10*time.Second,
		func(ctx context.Context) (check.Written, error) {
			return whenWritten(ctx, e)
		},
	)
	if err != nil {
		return out, err
	}
	out.pods = len(pods)
	for _, p := range pods {
		began := p.Status.StartTime
		switch {
		case isFor(p.Annotations[configAnnotation(e)], hash) &&
			!p.CreationTimestamp.Time.Before(out.Changed.Truncate(time.Second)):
		case began == nil:
			out.old = append(out.old, p.Name+" has not started yet")
		case began.After(out.Changed), began.Equal(&out.Made): // no pod starts before its ConfigMap exists
		default:
			out.old = append(out.old, p.Name+" has been running since "+began.UTC().Format(time.DateTime))
		}
	}
	return out, nil
}

// whenWritten returns when the configuration last changed. It sends its own request, because cached objects have no
// managedFields.
func whenWritten(ctx context.Context, e steps.Env) (check.Written, error) {
	return check.KeyWritten(ctx, e.Cluster, vkNamespace(e), vkConfigMap(e), kubeletConfigKey)
}
