package interlink

import (
	"context"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

// jobDoer runs the test Job. If the Job has failed, its output is wrong, or a dependency has changed since, it deletes
// the Job and runs it again. Undo deletes the Job, and exports omit it.
type jobDoer struct{ action.Manifest }

// Plan plans no Job until the edge node's facts file says that the plugin mounts tokens. Before that, the Job would
// only fail.
func (j jobDoer) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	if e.PeerFromFile() {
		if _, err := e.Peer.Text("plugin-exports"); err != nil {
			return steps.Change{}, err
		}
	}
	old, why, err := endedJob(ctx, e)
	if err != nil {
		return steps.Change{}, err
	}
	c, err := j.Manifest.Plan(ctx, e)
	if err != nil || old == nil || len(c.Items) == 0 || c.Items[0].Verb != steps.Leave {
		return c, err
	}
	c.Items[0].Verb, c.Items[0].Note, c.Items[0].Hash = steps.Run, why+", so it is deleted and runs again", string(old.UID)
	c.Permissions = append(c.Permissions, permission.Rule{
		Verb: "delete", Group: batchv1.GroupName, Resource: "jobs", Namespace: old.Namespace, Name: old.Name,
	})
	return c, nil
}

// Do runs the Job. If the plan says so, it first deletes the previous Job.
func (j jobDoer) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	c, err := j.Plan(ctx, e)
	if err != nil {
		return err
	}
	if len(c.Items) > 0 && c.Items[0].Verb == steps.Run {
		uid := types.UID(c.Items[0].Hash)
		if err := e.Cluster.Delete(ctx, check.Jobs, workloadNamespace(e), jobName(e), uid); err != nil {
			return err
		}
		if err := e.Cluster.Gone(ctx, check.Jobs, workloadNamespace(e), jobName(e), uid); err != nil {
			return err
		}
		say.Did(steps.Delete, "the previous Job "+workloadNamespace(e)+"/"+jobName(e), "")
	}
	return j.Manifest.Do(ctx, e, say)
}

// endedJob returns the test Job that this link has created, if its result no longer counts, and why. Otherwise it
// returns nil. If the proxy or the virtual kubelet must restart first, it returns an AbsentError, because the result
// will not count after that.
func endedJob(ctx context.Context, e steps.Env) (job *batchv1.Job, why string, err error) {
	job, err = check.Get[batchv1.Job](ctx, e.Cluster, check.Jobs, workloadNamespace(e), jobName(e))
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil || job.DeletionTimestamp != nil {
		return nil, "", err
	}
	made, err := inventory.MadeBy(ctx, e, check.Jobs, e.Action)
	if err != nil || !slices.ContainsFunc(made, func(m inventory.Made) bool { return m.UID == job.UID }) {
		return nil, "", err
	}
	ended := func(with batchv1.JobConditionType) bool {
		return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
			return c.Type == with && c.Status == corev1.ConditionTrue
		})
	}
	if !ended(batchv1.JobComplete) && !ended(batchv1.JobFailed) {
		return nil, "", nil
	}
	restarts, err := proxyRestarts(ctx, e)
	if err != nil {
		return nil, "", err
	}
	read, err := hasReadConfig(ctx, e)
	if err != nil {
		return nil, "", err
	}
	if restarts || !read {
		return nil, "", steps.Absent("the proxy or the virtual kubelet must restart first")
	}
	if ended(batchv1.JobFailed) {
		return job, "the Job has failed", nil
	}
	for _, output := range []func(context.Context, steps.Env) steps.Result{jobIdentity, jobRules} {
		if output(ctx, e).Status == steps.Fail {
			return job, "the Job's output is wrong", nil
		}
	}
	tried, err := ranOn(ctx, e)
	if err != nil || !tried.Outdated() {
		return nil, "", err
	}
	return job, "a dependency has changed since the Job ran", nil
}

// Export omits the Job.
func (j jobDoer) Export(context.Context, steps.Env) ([]action.Exported, error) {
	return []action.Exported{{Hand: "# the test Job is not part of the set-up: carrick runs it, and undo deletes it"}}, nil
}
