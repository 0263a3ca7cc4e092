package renku

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/action"
)

// testSession creates the session with Renku's kubeconfig to prove that the kubeconfig's
// permissions suffice. Plan and undo use the admin's permissions, so that they work without the
// kubeconfig.
type testSession struct{ action.Manifest }

// Plan returns an AbsentError if sessions.host is not set, because every session needs a host.
func (s testSession) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	if e.Answers.Text("sessions.host") == "" {
		return steps.Change{}, steps.Absent("sessions.host is not set, but every session needs a host")
	}
	return s.Manifest.Plan(ctx, e)
}

// Do creates the session and waits until it is usable. If the kubeconfig cannot create the session,
// Do uses the admin's permissions.
func (s testSession) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	as, err := withKubeconfig(e)
	if err == nil {
		say.Say("creating the test session with the new kubeconfig, as Renku does")
		by := e
		by.Cluster = as
		err = s.Manifest.Do(ctx, by, say)
	}
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || steps.IsAbsent(err) ||
		errors.As(err, new(kubeconfig.Error)) {
		say.Say(
			"the new kubeconfig cannot create the test session (%s): using your own permissions, which proves less",
			failure.Explain(err),
		)
		err = s.Manifest.Do(ctx, e, say)
	}
	if err != nil {
		return err
	}
	return followSession(ctx, e, say)
}

// parts lists the parts of a working session in the order in which they are created.
var parts = []struct {
	name string
	run  func(context.Context, steps.Env) steps.Result
}{
	{"session", sessionMade},
	{"volume", sessionVolume},
	{"pod", sessionPod},
	{"ingress", sessionIngress},
	{"address", sessionURL},
}

// followSession reports the progress of the session. It returns nil when all parts are ready. It
// returns an error if a part fails or on timeout. The checks then report the details.
func followSession(ctx context.Context, e steps.Env, say steps.Progress) error {
	short, cancel := context.WithTimeout(ctx, startsWithin)
	defer cancel()
	told := map[string]string{}
	for {
		traced, trace := tracked.WithTrace(short)
		open, failed := "", ""
		for _, p := range parts {
			r := p.run(traced, e)
			if now := fmt.Sprintf("%s: %s: %s", p.name, r.Status, r.Found); told[p.name] != now {
				say.Say("%s", clean.Text(now))
				told[p.name] = now
			}
			switch {
			case r.Status == steps.Fail && !strings.HasPrefix(r.Found, "there is no "): // a new object might not be visible yet
				failed = p.name + ": " + r.Found
			case !r.Status.Holds() && open == "":
				open = p.name + ": " + r.Found
			}
		}
		switch {
		case failed != "":
			return fmt.Errorf("the test session is not usable: %s; carrick keeps it for inspection", failed)
		case open == "":
			return nil
		}
		if err := trace.Wait(short); err != nil {
			if ctx.Err() != nil {
				return err
			}
			return fmt.Errorf(
				"the test session is not usable after %s: %s; carrick keeps it for inspection", startsWithin.Round(time.Second),
				open,
			)
		}
	}
}
