package chart

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/tracked"
)

type state struct {
	done, failed bool
	words        string   // "Deployment x: 0 of 1 ready"
	why          []string // why the object is not ready
}

// judge returns the state of an object. A nil object does not exist.
type judge func(*unstructured.Unstructured) state

// ready waits until all objects are ready: workloads are available, claims are bound, CustomResourceDefinitions are
// established.
func ready(
	ctx context.Context, c *cluster.Cluster, objs []*unstructured.Unstructured, within time.Duration, say func(string),
) error {
	return until(ctx, c, objs, within, say, readiness)
}

// finished waits until all Jobs and Pods have finished and all other objects exist.
func finished(
	ctx context.Context, c *cluster.Cluster, objs []*unstructured.Unstructured, within time.Duration, say func(string),
) error {
	return until(ctx, c, objs, within, say, completion)
}

// until waits until every object is done. of returns the state of an object. until returns an error if an object fails,
// or when the duration within has passed. Its reads are tracked, so that it reacts to every change immediately without
// polling.
func until(
	ctx context.Context, c *cluster.Cluster, objs []*unstructured.Unstructured, within time.Duration, say func(string),
	of judge,
) error {
	limit, cancel := context.WithTimeoutCause(ctx, within, errNotReady)
	defer cancel()
	said := ""
	for {
		looking, trace := tracked.WithTrace(limit)
		var open []state
		for _, o := range objs {
			s, err := look(looking, c, o, of)
			if err != nil && limit.Err() == nil {
				return err
			}
			if s.failed {
				return explained([]state{s}, "has failed")
			}
			if !s.done && err == nil {
				open = append(open, s)
			}
		}
		if len(open) == 0 && limit.Err() == nil {
			return nil
		}
		if len(open) > 0 && limit.Err() == nil {
			if now := sentence(open[0]); now != said {
				said = now
				say(now)
			}
		}
		if trace.Wait(limit) == nil {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if len(open) == 0 {
			return fmt.Errorf("%w after %s, and the cluster does not answer", errNotReady, within)
		}
		return explained(open, fmt.Sprintf("is not ready after %s", within))
	}
}

var errNotReady = errors.New("some objects are not ready")

func look(ctx context.Context, c *cluster.Cluster, o *unstructured.Unstructured, of judge) (state, error) {
	gvr, _, err := c.Resource(ctx, o.GroupVersionKind())
	if err != nil {
		return state{}, err
	}
	live, err := c.Get(ctx, gvr, o.GetNamespace(), o.GetName())
	switch {
	case apierrors.IsNotFound(err):
		return state{words: describe(o) + " does not exist yet"}, nil
	case err != nil:
		return state{}, err
	}
	s := of(live)
	if !s.done {
		s.why = append(s.why, reasons(ctx, c, live)...)
	}
	return s, nil
}

func readiness(o *unstructured.Unstructured) state {
	r, err := status.Compute(o)
	if err != nil {
		return state{words: describe(o) + ": " + clean.Text(err.Error())}
	}
	s := state{done: r.Status == status.CurrentStatus, failed: r.Status == status.FailedStatus}
	s.words = describe(o) + ": " + counted(o, clean.Text(r.Message))
	return s
}

func completion(o *unstructured.Unstructured) state {
	s := state{words: describe(o) + " runs"}
	switch o.GetKind() {
	case "Job":
		for _, c := range conditions(o) {
			s.done = s.done || c["type"] == "Complete" && c["status"] == "True"
			if c["type"] == "Failed" && c["status"] == "True" {
				s.failed, s.words = true, describe(o)+": "+text(c, "message")
			}
		}
	case "Pod":
		phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		s.done, s.failed = phase == "Succeeded", phase == "Failed"
	default:
		s.done = true
	}
	return s
}

// counted returns a string such as "0 of 1 ready" for a workload. The parameter otherwise is the result for other
// kinds.
func counted(o *unstructured.Unstructured, otherwise string) string {
	pair := map[string][2][]string{
		"Deployment":  {{"status", "availableReplicas"}, {"spec", "replicas"}},
		"StatefulSet": {{"status", "readyReplicas"}, {"spec", "replicas"}},
		"DaemonSet":   {{"status", "numberReady"}, {"status", "desiredNumberScheduled"}},
	}[o.GetKind()]
	if pair[0] == nil {
		return otherwise
	}
	have, _, _ := unstructured.NestedInt64(o.Object, pair[0]...)
	want, found, _ := unstructured.NestedInt64(o.Object, pair[1]...)
	if !found {
		return otherwise
	}
	return fmt.Sprintf("%d of %d ready", have, want)
}

func sentence(s state) string {
	if len(s.why) == 0 {
		return s.words
	}
	return s.words + ": " + strings.Join(s.why, "; ")
}

// explained combines the unfinished states into one error.
func explained(open []state, what string) error {
	var all []string
	for _, s := range open {
		all = append(all, sentence(s))
	}
	const most = 4
	if len(all) > most {
		all = append(all[:most], fmt.Sprintf("and %d more", len(open)-most))
	}
	return fmt.Errorf("the release %s: %s", what, strings.Join(all, "; "))
}
