package interlink

import (
	"context"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

// jobDoer runs the test Job. If the Job has failed, or what it depends on has changed since, it deletes the Job and runs
// it again. Undo deletes the Job, and exports omit it.
type jobDoer struct{ action.Manifest }

// Plan plans no Job until the edge node's facts file says that the plugin mounts tokens. Before that, the Job would
// only fail.
func (j jobDoer) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	if e.PeerFromFile() {
		if _, err := e.Peer.Text("plugin-exports"); err != nil {
			return steps.Change{}, err
		}
	}
	c, err := j.Manifest.Plan(ctx, e)
	if err != nil || len(c.Items) == 0 || c.Items[0].Verb != steps.Leave {
		return c, err
	}
	old, why, err := endedJob(ctx, e)
	if err != nil || old == nil {
		return c, err
	}
	c.Items[0].Verb, c.Items[0].Note, c.Items[0].Hash = steps.Run, why+", so it is deleted and runs again", string(old.UID)
	c.Permissions = append(c.Permissions, permission.Rule{
		Verb: "delete", Group: batchv1.GroupName, Resource: "jobs", Namespace: old.Namespace, Name: old.Name,
	})
	return c, nil
}

// Do runs the Job, if necessary once more.
func (j jobDoer) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	old, _, err := endedJob(ctx, e)
	if err != nil {
		return err
	}
	if old != nil {
		if err := e.Cluster.Delete(ctx, check.Jobs, old.Namespace, old.Name, old.UID); err != nil {
			return err
		}
		if err := e.Cluster.Gone(ctx, check.Jobs, old.Namespace, old.Name, old.UID); err != nil {
			return err
		}
		say.Did(steps.Delete, "Job "+old.Namespace+"/"+old.Name, "")
	}
	return j.Manifest.Do(ctx, e, say)
}

// endedJob returns this link's test Job if its result does not count anymore, and why. Otherwise it returns nil.
func endedJob(ctx context.Context, e steps.Env) (job *batchv1.Job, why string, err error) {
	job, err = check.Get[batchv1.Job](ctx, e.Cluster, check.Jobs, workloadNamespace(e), jobName(e))
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil || job.DeletionTimestamp != nil || inventory.CreatedBy(job.Annotations) != e.Link {
		return nil, "", err
	}
	ended := func(with batchv1.JobConditionType) bool {
		return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
			return c.Type == with && c.Status == corev1.ConditionTrue
		})
	}
	if ended(batchv1.JobFailed) {
		return job, "the Job has failed", nil
	}
	tried, err := ranOn(ctx, e)
	if err != nil || !ended(batchv1.JobComplete) || !tried.Outdated() {
		return nil, "", err
	}
	return job, "its result is older than what it depends on", nil
}

// Export omits the Job.
func (j jobDoer) Export(context.Context, steps.Env) ([]action.Exported, error) {
	return []action.Exported{{Hand: "# the test Job is not part of the set-up: carrick runs it, and undo deletes it"}}, nil
}
