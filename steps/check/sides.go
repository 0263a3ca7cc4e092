package check

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/failure"
	"carrick/steps"
)

// NotTheSame and checks of addresses require these facts. Add Identity() to the facts of a guide's first step.
const (
	uidFact    = "cluster-uid"
	ServerFact = "api-server"
)

// Identity returns the facts that distinguish one cluster from another.
func Identity() []steps.Fact {
	return []steps.Fact{
		{
			Name: uidFact, Title: "the UID of kube-system", On: steps.Both, Shared: true,
			Learn: func(ctx context.Context, e steps.Env) (any, error) { return e.Cluster.UID(ctx) },
		},
		{
			Name: ServerFact, Title: "the address of the API server", On: steps.Both, Shared: true,
			Learn: func(_ context.Context, e steps.Env) (any, error) { return e.Cluster.Server(), nil },
		},
	}
}

// IdentityOn returns the same facts for one side. Use it if the other side is not a cluster.
func IdentityOn(side steps.Side) []steps.Fact {
	out := Identity()
	for i := range out {
		out[i].On = side
	}
	return out
}

// VersionOf reads the version of this side's API server, such as v1.33.2.
func VersionOf(ctx context.Context, e steps.Env) (any, error) {
	v, err := e.Cluster.Version(ctx)
	if err != nil {
		return nil, err
	}
	return v.Git, nil
}

// ContextCA returns a function that reads the CA of this side's context in PEM. none is the error message for a context
// without a CA.
func ContextCA(none string) func(context.Context, steps.Env) (any, error) {
	return func(_ context.Context, e steps.Env) (any, error) {
		if ca := e.Cluster.CA(); len(ca) > 0 {
			return string(ca), nil
		}
		return nil, steps.Absent("%s", none)
	}
}

// On restricts checks to one side. Use it if the other side is not a cluster.
func On(side steps.Side, checks ...steps.Check) []steps.Check {
	for i := range checks {
		checks[i].On = side
	}
	return checks
}

// Reachable returns the check "reachable". It verifies that the side's API server answers and reports the server's
// version and latency.
func Reachable() steps.Check {
	return steps.Check{
		Name: "reachable", Title: "The API server answers", On: steps.Both,
		Why: "All other checks of the cluster depend on its API server.",
		Run: func(ctx context.Context, e steps.Env) steps.Result {
			v, err := e.Cluster.Version(ctx)
			if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
				return steps.Passed("%s answers, but rejects these credentials", e.Cluster.Server())
			}
			if err != nil {
				return steps.Errored(err).Or(e.Kubectl() + " version")
			}
			return steps.Passed("Kubernetes %s at %s, %d ms away", v.Git, e.Cluster.Server(), v.Latency.Milliseconds())
		},
	}
}

// SignedIn returns the check "signed-in", which most checks of a cluster need. It verifies that the API server accepts
// the credentials of the side's context and reports the user.
func SignedIn() steps.Check {
	return steps.Check{
		Name: "signed-in", Title: "The API server accepts the context's credentials", On: steps.Both,
		Needs: []string{"reachable"},
		Why:   "Otherwise an expired login looks like a missing permission in the other checks.",
		Run: func(ctx context.Context, e steps.Env) steps.Result {
			who, err := e.Cluster.WhoAmI(ctx)
			if apierrors.IsUnauthorized(err) {
				return steps.Failed(failure.Explain(err), "log in again, then: "+e.Kubectl()+" auth whoami")
			}
			if err != nil {
				return steps.Errored(err)
			}
			return steps.Passed("signed in as %s", who.Name)
		},
	}
}

// AtLeast returns the check "version". It verifies that the side runs Kubernetes 1.minor or newer.
func AtLeast(minor int, why string) steps.Check {
	return steps.Check{
		Name: "version", Title: fmt.Sprintf("Kubernetes is 1.%d or newer", minor), On: steps.Both,
		Needs: []string{"signed-in"},
		Why:   why,
		Run: func(ctx context.Context, e steps.Env) steps.Result {
			v, err := e.Cluster.Version(ctx)
			if err != nil {
				return steps.Errored(err)
			}
			if v.Major == 1 && v.Minor < minor {
				return steps.Failed(
					fmt.Sprintf("Kubernetes is %s", v.Git),
					fmt.Sprintf("upgrade the %s cluster to 1.%d or newer", e.SideName(), minor),
				)
			}
			return steps.Passed("Kubernetes is %s", v.Git)
		},
	}
}

// maxSkew is the clock skew at which tokens and certificates begin to appear invalid.
const maxSkew = 5 * time.Minute

// Clock returns the check "clock". It verifies that the API server's clock matches this machine's.
func Clock() steps.Check {
	return steps.Check{
		Name: "clock", Title: "Its clock matches this machine's", On: steps.Both, Needs: []string{"signed-in"},
		Why: "If the clocks differ, valid certificates and tokens look expired or not yet valid.",
		Run: func(ctx context.Context, e steps.Env) steps.Result {
			v, err := e.Cluster.Version(ctx)
			if err != nil {
				return steps.Errored(err)
			}
			if !v.SkewKnown {
				return steps.Skipped("the API server sent no Date header")
			}
			off := v.Skew.Abs().Round(time.Second)
			if off > maxSkew {
				way := "ahead of"
				if v.Skew < 0 {
					way = "behind"
				}
				return steps.Warned(
					fmt.Sprintf("its clock is %s %s this machine's", off, way),
					"timedatectl set-ntp true    # on the machine whose clock is wrong",
				)
			}
			return steps.Passed("the clocks differ by less than %s", max(off, time.Second)+time.Second)
		},
	}
}

// NotTheSame returns the check "two-clusters". It compares the UIDs of the kube-system namespaces to verify that the
// sides are two different clusters.
func NotTheSame() steps.Check {
	return steps.Check{
		Name: "two-clusters", Title: "The two contexts are different clusters", On: steps.Remote,
		Needs: []string{"signed-in", "peer/signed-in"},
		Why:   "If both contexts are one cluster, carrick creates everything on the wrong side.",
		Run: func(_ context.Context, e steps.Env) steps.Result {
			own, err := e.Own.Text(uidFact)
			if err != nil {
				return steps.Errored(err)
			}
			peer, err := e.Peer.Text(uidFact)
			if err != nil {
				return steps.Errored(err)
			}
			if own == peer {
				return steps.Failed(
					fmt.Sprintf("both contexts point to the same cluster: its kube-system has UID %s", own),
					"choose another context for one of the sides: run carrick and open the sides screen",
				)
			}
			return steps.Passed("kube-system has UID %s here and %s there", short(own), short(peer))
		},
	}
}

func short(uid string) string {
	if len(uid) > 8 {
		return uid[:8] + "…"
	}
	return uid
}
