package interlink

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

func testImage(_ context.Context, e steps.Env) steps.Result {
	image := e.Answers.Text("test.image")
	use := "set test.image to registry.k8s.io/kubectl:VERSION"
	if v, err := e.Own.Text("server-version"); err == nil {
		use = "set test.image to registry.k8s.io/kubectl:" + cmp.Or(plainVersion(v), "VERSION")
	}
	name := strings.TrimPrefix(strings.TrimPrefix(image, "docker.io/"), "index.docker.io/")
	switch {
	case strings.HasPrefix(name, "bitnami/"):
		return steps.Failed(
			clean.Text(image)+" no longer exists: the images of docker.io/bitnami are frozen in docker.io/bitnamilegacy", use,
		)
	case strings.HasPrefix(name, "bitnamilegacy/"):
		return steps.Warned(clean.Text(image)+" gets no more fixes", use)
	case tagOf(image) == "latest" && !strings.Contains(image, "@"):
		return steps.Warned(clean.Text(image)+" can change at any time, and may not match the API server's version", use)
	}
	return steps.Passed("%s; the Job shows whether compute nodes can pull it", clean.Text(image))
}

func jobName(e steps.Env) string { return recordName(e, "test") }

// jobPod returns the newest pod of the test Job, or nil if there is none.
func jobPod(ctx context.Context, e steps.Env) (*corev1.Pod, error) {
	pods, err := check.List[corev1.Pod](
		ctx, e.Cluster, check.Pods, workloadNamespace(e), cluster.Selector{Labels: batchv1.JobNameLabel + "=" + jobName(e)},
	)
	if err != nil {
		return nil, err
	}
	var out *corev1.Pod
	for _, p := range pods {
		if out == nil || p.CreationTimestamp.After(out.CreationTimestamp.Time) {
			out = p
		}
	}
	return out, nil
}

// logUnread returns the result for a log that cannot be read. If the virtual kubelet fails the TLS handshake, the cause
// is its missing serving certificate.
func logUnread(ctx context.Context, e steps.Env, err error) steps.Result {
	r := steps.Errored(err)
	if !strings.Contains(r.Found, "tls: internal error") {
		return r
	}
	if s := servingCertificate(ctx, e); s.Status != steps.Pass {
		r.Found, r.Fix = "the virtual kubelet has no certificate for serving logs: "+s.Found, s.Fix
	}
	return r
}

func jobComplete(ctx context.Context, e steps.Env) steps.Result {
	j, err := check.Get[batchv1.Job](ctx, e.Cluster, check.Jobs, workloadNamespace(e), jobName(e))
	if apierrors.IsNotFound(err) {
		return steps.NotTried("the test Job has not run yet")
	}
	if err != nil {
		return steps.Errored(err)
	}
	p, err := jobPod(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	k := e.Kubectl() + " -n " + j.Namespace
	for _, c := range j.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			return steps.Passed("Job %s/%s succeeded in %s", j.Namespace, j.Name, tookOf(j))
		case c.Type == batchv1.JobFailed:
			return jobFailed(ctx, e, j, p)
		}
	}
	if p != nil {
		if why := pullTrouble(p); why != "" {
			return notPulled(e, p, why)
		}
		if p.Spec.NodeName == "" {
			return steps.Waits(
				p.CreationTimestamp.Time, "pod %s is not scheduled yet%s", p.Name, unscheduled(p),
			).Or(k + " describe pod " + p.Name)
		}
	}
	return steps.Waits(
		j.CreationTimestamp.Time, "Job %s has not finished; the batch system may have queued it", j.Name,
	).Or(k + " describe job " + j.Name + "\nrun on the edge node: squeue")
}

func tookOf(j *batchv1.Job) time.Duration {
	if j.Status.StartTime == nil || j.Status.CompletionTime == nil {
		return 0
	}
	return j.Status.CompletionTime.Sub(j.Status.StartTime.Time)
}

// jobFailed returns the result for a failed test Job. p is the Job's newest pod, or nil if the pod no longer exists.
func jobFailed(ctx context.Context, e steps.Env, j *batchv1.Job, p *corev1.Pod) steps.Result {
	fix := runsAgain(e)
	if p == nil {
		return steps.Failed(fmt.Sprintf("Job %s failed, and its pod no longer exists", j.Name), fix)
	}
	if why := pullTrouble(p); why != "" {
		return notPulled(e, p, why)
	}
	said := ""
	for _, container := range []string{"whoami", "rules"} {
		text, err := check.PodLog(ctx, e.Cluster, p, container, 200, time.Minute)
		if err != nil {
			r := logUnread(ctx, e, err)
			return steps.Failed(fmt.Sprintf("Job %s failed, and its log cannot be read: %s", j.Name, r.Found),
				cmp.Or(r.Fix, e.Kubectl()+" -n "+j.Namespace+" describe pod "+p.Name))
		}
		if said = fatalLine(text); unpullable(said) {
			return notPulled(e, p, said)
		}
		if said != "" {
			break
		}
		if lines := strings.Split(strings.TrimSpace(text), "\n"); strings.Contains(strings.ToLower(text), "rror") ||
			strings.Contains(text, "refused") {
			said = lines[len(lines)-1]
			break
		}
	}
	if said == "" {
		return steps.Failed(fmt.Sprintf("Job %s failed, and its log contains no error", j.Name), fix)
	}
	return steps.Failed("the Job's log contains "+quoted(said), afterHint(e, said))
}

func runsAgain(e steps.Env) string { return e.ApplyStep("test") + "    # runs the Job again" }

// afterHint returns the fix for a Job with the given output: first the fix of its cause, then the command that runs the
// Job again.
func afterHint(e steps.Env, said string) string {
	if hint := hintFor(e, said); hint != e.ApplyStep("test") {
		return hint + "\n" + runsAgain(e)
	}
	return runsAgain(e)
}

func notPulled(e steps.Env, p *corev1.Pod, why string) steps.Result {
	return steps.Failed(fmt.Sprintf("pod %s cannot pull the image: %s", p.Name, quoted(why)),
		"run on a compute node: apptainer pull docker://"+e.Answers.Text("test.image"))
}

// fatalLine returns the last line that starts with FATAL:, or "" if there is none. apptainer and singularity print such
// lines.
func fatalLine(text string) string {
	out := ""
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "FATAL:") {
			out = line
		}
	}
	return out
}

// unpullable reports whether line is the error that apptainer or singularity prints if it cannot pull an image
// (apptainer/apptainer: cmd/internal/cli/actions.go, replaceURIWithImage).
func unpullable(line string) bool {
	return strings.Contains(line, "Unable to handle ") && strings.Contains(line, " uri:")
}

// pullTrouble returns why a container's image cannot be pulled, or "" if no container status reports such an error. The
// Slurm plugin sets no such status and only logs the error (interlink-hq/interlink-slurm-plugin: pkg/slurm/Status.go,
// f8451d93). Other plugins set these reasons and messages.
func pullTrouble(p *corev1.Pod) string {
	for _, c := range p.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && (w.Reason == "ImagePullBackOff" || w.Reason == "ErrImagePull" ||
			w.Reason == "InvalidImageName") {
			return cmp.Or(w.Message, w.Reason)
		}
		if t := c.State.Terminated; t != nil && (strings.Contains(t.Message, "unable to pull") ||
			strings.Contains(t.Message, "manifest unknown") || strings.Contains(t.Reason, "ImagePull")) {
			return cmp.Or(t.Message, t.Reason)
		}
	}
	return ""
}

func unscheduled(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Message != "" {
			return ": " + quoted(c.Message)
		}
	}
	return ""
}

func jobIdentity(ctx context.Context, e steps.Env) steps.Result {
	p, err := jobPod(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if p == nil {
		return steps.Skipped("the test Job has no pod, so it has no log")
	}
	text, err := check.PodLog(ctx, e.Cluster, p, "whoami", 200, time.Minute)
	if err != nil {
		return logUnread(ctx, e, err)
	}
	who := strings.TrimSpace(text)
	if i := strings.LastIndex(who, "\n"); i >= 0 { // skips output that the batch system's containers print first
		who = strings.TrimSpace(who[i+1:])
	}
	if who != workloadUser(e) {
		return steps.Failed(
			fmt.Sprintf("the Job's log contains %s instead of %s", quoted(who), workloadUser(e)), afterHint(e, who),
		)
	}
	return steps.Passed("%s", who)
}

func jobRules(ctx context.Context, e steps.Env) steps.Result {
	p, err := jobPod(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if p == nil {
		return steps.Skipped("the test Job has no pod, so it has no log")
	}
	text, err := check.PodLog(ctx, e.Cluster, p, "rules", 200, time.Minute)
	if err != nil {
		return logUnread(ctx, e, err)
	}
	for _, must := range []string{
		"selfsubjectreviews.authentication.k8s.io", "selfsubjectrulesreviews.authorization.k8s.io",
	} {
		if !strings.Contains(text, must) {
			return steps.Failed("the Job's output does not contain "+must, afterHint(e, text))
		}
	}
	r := steps.Passed("the Job printed %d lines of rules", strings.Count(strings.TrimSpace(text), "\n"))
	r.Lines = strings.Split(strings.TrimSpace(clean.Text(text)), "\n")
	return r
}
