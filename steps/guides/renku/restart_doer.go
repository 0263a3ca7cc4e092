package renku

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/permission"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/check"
)

func restartPermissions(s service) []permission.Rule {
	out := check.Verbs("apps", "deployments", s.Namespace, "get", "list", "watch")
	out = append(out, check.Verbs("", "pods", s.Namespace, "list", "watch")...)
	return append(
		out, permission.Rule{Verb: "patch", Group: "apps", Resource: "deployments", Namespace: s.Namespace, Name: s.Name},
	)
}

func planRestart(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := theCause(ctx, e)
	if err != nil {
		return steps.Change{}, err
	}
	_, err = e.Peer.Masked("kubeconfig")
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) && !absent.PeerFile {
		return steps.Change{}, err // once the kubeconfig is known, the Secret is updated, which changes the cause
	}
	if storedIsProved(ctx, e).Status == steps.Fail { // the pending update of the Secret will change the cause
		return steps.Change{}, steps.Absent("the kubeconfig in Renku's Secret must be updated first")
	}
	all, err := serviceStates(ctx, e, c)
	if err != nil {
		return steps.Change{}, err
	}
	var out steps.Change
	warned := false
	for _, s := range all {
		if s.Deployment == nil {
			return steps.Change{}, steps.Absent(
				"no Deployment has label app=%s in namespace %s", s.app, renkuNamespace(e),
			)
		}
		it := steps.Item{Verb: steps.Run, What: restartOf(s.service), Hash: c.hash}
		switch {
		case s.marked:
			it.Verb, it.Note = steps.Leave, "already restarted for this change"
		case s.fresh:
			it.Verb, it.Note = steps.Leave, "started after the last change"
		case !warned:
			it.Note, warned = harm, true
		}
		out.Items = append(out.Items, it)
		out.Permissions = append(out.Permissions, restartPermissions(s.service)...)
	}
	return out, nil
}

func restartOf(s service) string { return "restart of Deployment " + s.Namespace + "/" + s.Name }

func doRestart(ctx context.Context, e steps.Env, say steps.Progress) error {
	c, err := theCause(ctx, e)
	if err != nil {
		return err
	}
	all, err := serviceStates(ctx, e, c)
	if err != nil {
		return err
	}
	marks := map[types.UID]string{}
	for _, s := range all {
		if s.Deployment == nil {
			return fmt.Errorf("no Deployment has label app=%s", s.app)
		}
		if s.upToDate() {
			continue
		}
		if err := annotate(ctx, e, s.service, c.hash); err != nil {
			return err
		}
		say.Did(steps.Run, restartOf(s.service), "")
		marks[s.UID] = c.hash
	}
	return awaitRollouts(ctx, e, marks, say)
}

// annotate sets the restart annotation in a service's pod template. An empty value removes the
// annotation. Either change makes the Deployment start new pods.
func annotate(ctx context.Context, e steps.Env, s service, value string) error {
	var v any = value
	if value == "" {
		v = nil
	}
	notes := map[string]any{"annotations": map[string]any{restartedFor(e.Link): v}}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": notes}}})
	if err != nil {
		return err
	}
	_, err = e.Cluster.Patch(
		ctx, check.Deployments, s.Namespace, s.Name, patch, cluster.PatchOptions{Manager: e.Manager(), UID: s.UID},
	)
	return err
}

const rolloutWithin = 5 * time.Minute

// awaitRollouts waits until all pods of the services are new and ready, and reports progress. marks
// maps the UIDs of Deployments to the expected values of the restart annotation. A Deployment with
// another value is outdated in the cache and counts as not rolled out. On timeout, the error names
// the services that are not ready.
func awaitRollouts(ctx context.Context, e steps.Env, marks map[types.UID]string, say steps.Progress) error {
	short, cancel := context.WithTimeout(ctx, rolloutWithin)
	defer cancel()
	last := ""
	for {
		traced, trace := tracked.WithTrace(short)
		open, err := rolling(traced, e, marks)
		if err != nil {
			return err
		}
		if len(open) == 0 {
			return nil
		}
		if now := strings.Join(open, "; "); now != last {
			say.Say("%s", clean.Text(now))
			last = now
		}
		if err := trace.Wait(short); err != nil {
			if ctx.Err() != nil {
				return err
			}
			return fmt.Errorf(
				"the restart did not finish within %s: %s. Old pods continue to serve until new pods are ready", rolloutWithin,
				last,
			)
		}
	}
}

// rolling returns a message for each service whose rollout is not complete.
func rolling(ctx context.Context, e steps.Env, marks map[types.UID]string) ([]string, error) {
	all, err := servicesOf(ctx, e)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, s := range all {
		if s.Deployment == nil {
			continue
		}
		done, progress := rolledOut(s.Deployment)
		if mark, ok := marks[s.UID]; ok && s.Spec.Template.Annotations[restartedFor(e.Link)] != mark {
			done, progress = false, "rollout not started yet"
		}
		if done {
			continue
		}
		why, err := whyNotReady(ctx, e, s)
		if err != nil {
			return nil, err
		}
		out = append(out, s.name()+": "+progress+why)
	}
	return out, nil
}

// whyNotReady returns why the newest pod of a service is not ready, in parentheses. It returns ""
// if the reason is unknown.
func whyNotReady(ctx context.Context, e steps.Env, s service) (string, error) {
	pods, err := servicePods(ctx, e)
	if err == nil {
		pods, err = podsOf(s.Deployment, pods)
	}
	if err != nil || len(pods) == 0 {
		return "", err
	}
	if said := whyPodNotReady(ctx, e.Cluster, pods[0]); said != "" {
		return " (pod " + pods[0].Name + ": " + said + ")", nil
	}
	return "", nil
}

// planRestartAgain plans the undo of a restart. Removing the annotation restarts the services once
// more, and they no longer load this cluster's kubeconfig.
func planRestartAgain(ctx context.Context, e steps.Env) (steps.Change, error) {
	marked, err := markedServices(ctx, e)
	if err != nil {
		return steps.Change{}, err
	}
	var out steps.Change
	for _, s := range marked {
		out.Items = append(out.Items, steps.Item{
			Verb: steps.Run, What: restartOf(s), Hash: string(s.UID) + s.Spec.Template.Annotations[restartedFor(e.Link)],
			Note: "a restart cannot be undone, so the service restarts again without the cluster",
		})
		out.Permissions = append(out.Permissions, restartPermissions(s)...)
	}
	return out, nil
}

func restartAgain(ctx context.Context, e steps.Env, say steps.Progress) error {
	marked, err := markedServices(ctx, e)
	if err != nil {
		return err
	}
	marks := map[types.UID]string{}
	for _, s := range marked {
		if err := annotate(ctx, e, s, ""); err != nil {
			return err
		}
		say.Did(steps.Run, restartOf(s), "")
		marks[s.UID] = ""
	}
	if len(marked) == 0 {
		return nil
	}
	return awaitRollouts(ctx, e, marks, say)
}

// markedServices returns the services that have this link's restart annotation.
func markedServices(ctx context.Context, e steps.Env) ([]service, error) {
	all, err := servicesOf(ctx, e)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(s service) bool {
		return s.Deployment == nil || s.Spec.Template.Annotations[restartedFor(e.Link)] == ""
	}), nil
}
