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

// endpointTarget describes the endpoint as one side sees it.
type endpointTarget struct {
	where  string // host:port
	host   string
	mode   string
	by     string // CA of the certificate: own (the endpoint's), kube (the cluster's) or public
	ca     []byte // PEM; nil for a public CA, or if the CA is unknown
	noCA   error  // why the CA is unknown
	looker string // machine that runs the check, for findings
}

// targetOf returns the endpoint to check. If this machine cannot check the endpoint, targetOf returns a result that
// explains why.
func targetOf(e steps.Env) (endpointTarget, *steps.Result) {
	facts, who := e.Own, "this machine"
	if e.Side == steps.Remote {
		if !e.Host.Here() {
			r := steps.Skipped(
				"a local directory stands for the edge node; run on the edge node: carrick check %s --side remote", e.LinkFile(),
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

// looking returns a check's Run function, which calls look with the endpoint and adds the name of the machine that ran
// the check to the finding.
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
			r.Found += " (seen from " + t.looker + ")"
		}
		return r
	}
}

const lookAge = 30 * time.Second

// handshake returns the report of a TLS handshake with the endpoint. An invalid certificate is not an error, because
// each check evaluates the report itself.
func (t endpointTarget) handshake(ctx context.Context, e steps.Env) (probe.TLSReport, error) {
	key := fmt.Sprintf("endpoint-tls/%s/%s", e.Side, t.where)
	return tracked.Look(
		ctx, key, lookAge, func(ctx context.Context) (probe.TLSReport, error) { return probe.TLS(ctx, t.where, "", nil) },
	)
}

// get sends a GET request for path without a token.
func (t endpointTarget) get(ctx context.Context, e steps.Env, path string) (probe.HTTPReport, error) {
	key := fmt.Sprintf("endpoint-get/%s/%s%s/%s", e.Side, t.where, path, masked.New(string(t.ca)).Hash())
	return tracked.Look(ctx, key, lookAge, func(ctx context.Context) (probe.HTTPReport, error) {
		return probe.HTTP(ctx, "GET", "https://"+t.where+path, probe.HTTPOptions{Roots: t.ca, NoRedirects: true})
	})
}
