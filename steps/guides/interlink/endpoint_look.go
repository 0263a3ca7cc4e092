package interlink

import (
	"context"
	"fmt"
	"net"
	"time"

	"carrick/cluster/masked"
	"carrick/cluster/probe"
	"carrick/cluster/tracked"
	"carrick/steps"
)

// endpointTarget is the endpoint from the viewpoint of one side.
type endpointTarget struct {
	where  string // host:port
	host   string
	mode   string
	by     string // what the certificate verifies against: own, kube, public
	ca     []byte // PEM; nil: a public CA, or unknown
	noCA   error  // the reason why the CA is unknown
	looker string // the vantage point
}

// targetOf returns the endpoint to check, or a result that explains why it cannot be checked
// from here.
func targetOf(e steps.Env) (endpointTarget, *steps.Result) {
	facts, who := e.Own, "this machine"
	if e.Side == steps.Remote {
		if !e.Host.Here() {
			r := steps.Skipped(
				"the edge node is only a folder here; run on the edge node: carrick check %s --side remote", e.LinkFile(),
			)
			return endpointTarget{}, &r
		}
		facts, who = e.Peer, "the edge node"
	}
	t := endpointTarget{looker: who}
	var err error
	if t.where, err = facts.Text("endpoint"); err == nil {
		if t.mode, err = facts.Text("endpoint-mode"); err == nil {
			t.host, _, err = net.SplitHostPort(t.where)
		}
	}
	if err != nil {
		r := steps.Errored(err)
		return t, &r
	}
	if t.by, t.noCA = facts.Text("endpoint-proved-by"); t.noCA == nil && t.by != "public" {
		var ca string
		ca, t.noCA = facts.Text("endpoint-ca")
		t.ca = []byte(ca)
	}
	return t, nil
}

// looking returns a check's Run function that runs look on the endpoint.
func looking(
	look func(context.Context, steps.Env, endpointTarget) steps.Result,
) func(context.Context, steps.Env) steps.Result {
	return func(ctx context.Context, e steps.Env) steps.Result {
		t, no := targetOf(e)
		if no != nil {
			return *no
		}
		r := look(ctx, e, t)
		if r.Found != "" {
			r.Found += ", seen from " + t.looker
		}
		return r
	}
}

const lookAge = 30 * time.Second

// handshake returns the certificate that the endpoint serves; each check judges it separately.
// The error is not nil if the handshake failed.
func (t endpointTarget) handshake(ctx context.Context, e steps.Env) (probe.TLSReport, error) {
	key := fmt.Sprintf("endpoint-tls/%s/%s", e.Side, t.where)
	return tracked.Look(
		ctx, key, lookAge, func(ctx context.Context) (probe.TLSReport, error) { return probe.TLS(ctx, t.where, "", nil) },
	)
}

// get requests a path without a token.
func (t endpointTarget) get(ctx context.Context, e steps.Env, path string) (probe.HTTPReport, error) {
	key := fmt.Sprintf("endpoint-get/%s/%s%s/%s", e.Side, t.where, path, masked.New(string(t.ca)).Hash())
	return tracked.Look(ctx, key, lookAge, func(ctx context.Context) (probe.HTTPReport, error) {
		return probe.HTTP(ctx, "GET", "https://"+t.where+path, probe.HTTPOptions{Roots: t.ca, NoRedirects: true})
	})
}
