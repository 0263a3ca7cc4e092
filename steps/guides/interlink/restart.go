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

// configAnnotation returns the name of the pod template's annotation whose value is the hash of
// the configuration that the pods must have read.
func configAnnotation(e steps.Env) string {
	const most = 63 // length of the part after the slash
	name := "restarted." + e.Link
	return "carrick/" + name[:min(len(name), most)]
}

// Plan does not restart a virtual kubelet that has started since.
func (d restartDoer) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	dep, _, err := theKubelet(ctx, e)
	if apierrors.IsNotFound(err) {
		return steps.Change{}, steps.Absent(
			"Deployment %s/%s does not exist: InterLink's chart creates it", vkNamespace(e), vkDeployment(e),
		)
	}
	if err != nil {
		return steps.Change{}, err
	}
	knows, err := knowsConfig(ctx, e)
	if err != nil {
		return steps.Change{}, err
	}
	if knows {
		return steps.Change{
			Items: []steps.Item{
				{
					Verb: steps.Leave, What: "Deployment " + dep.Namespace + "/" + dep.Name,
					Note: "it has started since its configuration was written",
				},
			},
		}, nil
	}
	return d.Manifest.Plan(ctx, e)
}

// Do restarts the virtual kubelet, unless it has started since.
func (d restartDoer) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	knows, err := knowsConfig(ctx, e)
	if err != nil || knows {
		return err
	}
	return d.Manifest.Do(ctx, e, say)
}

// Undo restarts the virtual kubelet with the restored configuration, but not within the second in which the
// configuration was written. Timestamps have a resolution of seconds, so a pod of the same second may have started
// before the write.
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

// repeated is appended to the hash of a configuration at every second restart for it.
const repeated = ".again"

// isFor reports whether an annotation belongs to a configuration.
func isFor(value, hash string) bool { return value == hash || value == hash+repeated }

// restartCause returns the annotation for the wanted configuration. It does not change while
// pods are being replaced for it. If all pods have it but have not read the latest text, it
// changes, because otherwise nothing would restart.
func restartCause(ctx context.Context, e steps.Env) (any, error) {
	text, err := wantedConfig(ctx, e)
	if err != nil {
		return nil, err
	}
	hash := steps.HashOf(text)
	dep, _, err := theKubelet(ctx, e)
	if err != nil {
		return hash, nil // the plan gives the reason
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
	knows, err := knowsConfig(ctx, e)
	switch {
	case err != nil:
		return nil, err
	case knows, rolling, len(pods) == 0:
		return now, nil
	case now == hash:
		return hash + repeated, nil
	}
	return hash, nil
}

// knowsConfig reports whether the wanted configuration is in place and the virtual kubelet's
// pods started after it was written.
func knowsConfig(ctx context.Context, e steps.Env) (bool, error) {
	text, err := standingConfig(ctx, e)
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
	old  []string // descriptions of the pods that started before it
}

// startsOf checks the pods: a pod has read the configuration if it was created for it since the
// last write, or started after that. An earlier pod may have been created for the same text,
// because a helm upgrade can write another one in between.
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
		case began.After(out.Changed), began.Equal(&out.Made): // pods started with it only after its creation
		default:
			out.old = append(out.old, p.Name+" has been running since "+began.UTC().Format(time.DateTime))
		}
	}
	return out, nil
}

// whenWritten returns when the configuration last changed. Cached reads omit managedFields.
func whenWritten(ctx context.Context, e steps.Env) (check.Written, error) {
	return check.KeyWritten(ctx, e.Cluster, vkNamespace(e), vkConfigMap(e), kubeletConfigKey)
}
