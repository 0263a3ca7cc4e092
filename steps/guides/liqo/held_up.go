package liqo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"carrick/cluster"
	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/check"
)

// heldUpFact is the name of the fact that explains why Liqo deletes no objects on a side. Either Liqo is not running,
// or a namespace of the peering is stuck in deletion.
const heldUpFact = "held-up"

// heldUp returns the reasons why Liqo deletes no objects, each with a command to investigate it. carrick reads this
// fact after an undo has timed out.
func heldUp(ctx context.Context, e steps.Env) (any, error) {
	var out []string
	runs := liqoRuns(ctx, e)
	if runs.Status == steps.Fail {
		out = append(out, withFix(runs.Found, runs.Fix))
	}
	var spaces []*corev1.Namespace
	if id, err := peerID(e); err == nil { // otherwise it is unknown which namespaces belong to this peering
		of := cluster.Selector{Labels: remoteIDLabel + "=" + id}
		if spaces, err = check.List[corev1.Namespace](ctx, e.Cluster, check.Namespaces, "", of); err != nil && len(out) == 0 {
			return nil, err
		}
	}
	for _, ns := range spaces {
		if ns.DeletionTimestamp == nil {
			continue
		}
		out = append(out, withFix(fmt.Sprintf("namespace %s is being deleted%s", ns.Name, heldBy(ns)),
			e.Kubectl()+" get namespace "+ns.Name+" -o jsonpath='{.status.conditions}'"))
	}
	if len(out) == 0 {
		return nil, steps.Absent("nothing blocks Liqo on the %s", e.SideName())
	}
	return strings.Join(out, "; "), nil
}

func withFix(found, fix string) string {
	command, _, _ := strings.Cut(fix, "    #")
	return found + " (" + command + ")"
}

type heldUpError struct {
	err   error
	cause string
}

func (h *heldUpError) Error() string { return h.err.Error() + ". Cause: " + h.cause }

func (h *heldUpError) Unwrap() error { return h.err }

// explainHeld extends the error of a timed-out undo with the reason why Liqo is stuck on either side. It returns other
// errors unchanged. known is false if the undo timed out for an unknown reason.
func explainHeld(e steps.Env, err error) (explained error, known bool) {
	if !errors.As(err, new(*failure.StillThereError)) || errors.As(err, new(*heldUpError)) {
		return err, true
	}
	var why []string
	for _, side := range []struct {
		name  string
		facts steps.Facts
	}{{e.SideName(), e.Own}, {e.PeerName(), e.Peer}} {
		if words, err := side.facts.Text(heldUpFact); err == nil {
			why = append(why, "on the "+side.name+", "+words)
		}
	}
	if len(why) == 0 {
		return err, false
	}
	return &heldUpError{err, strings.Join(why, "; ")}, true
}
