package liqo

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/steps"
)

// freshWithin is the maximum age of the last recorded ping. The gateway records a ping every 10
// seconds (liqotech/liqo: deployments/liqo/values.yaml, gatewayTemplates.ping).
const freshWithin = time.Minute

func tunnelUp(ctx context.Context, e steps.Env) steps.Result {
	g, err := sideGateway(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	found, err := living(ctx, e, connections, tenantNamespace(e), "")
	if err != nil {
		return steps.Errored(err)
	}
	for _, c := range found {
		if c.GetName() != gatewayObjectName(g) {
			continue
		}
		since, err := tunnelSince(ctx, e, c)
		if err != nil {
			return steps.Errored(err)
		}
		r := connectionSays(e, g, c, since, clusterNow(ctx, e))
		if r.Status == steps.Fail || r.Status == steps.Waiting {
			if old, is := outdatedKeys(ctx, e); is {
				return old
			}
		}
		return r
	}
	why := "the gateway creates it once a correctly labelled PublicKey of the peer exists"
	if connects(e) {
		why += " and the host name in the GatewayClient resolves"
	}
	return steps.Waits(
		g.GetCreationTimestamp().Time, "Connection %s/%s does not exist: %s", g.GetNamespace(), gatewayObjectName(g), why,
	).Or(gatewayLog(e, g))
}

// tunnelSince returns when the tunnel of a Connection was last started. The Connection outlives a restart of its
// gateway.
func tunnelSince(ctx context.Context, e steps.Env, c *unstructured.Unstructured) (time.Time, error) {
	since := c.GetCreationTimestamp().Time
	pods, err := gatewayPods(ctx, e)
	for _, p := range pods {
		if at := wireguardSince(p); p.DeletionTimestamp == nil && at.After(since) {
			since = at
		}
	}
	return since, err
}

func gatewayLog(e steps.Env, g *unstructured.Unstructured) string {
	return inTenant(e) + "logs deployment/" + steps.Quoted(gatewayObjectName(g)) + " --all-containers --tail=30"
}

// connectionSays returns the verdict on a Connection. The time to wait for the tunnel begins at since.
func connectionSays(e steps.Env, g, c *unstructured.Unstructured, since, now time.Time) steps.Result {
	name := "Connection " + placeOf(c)
	switch value := text(c, "status", "value"); value {
	case "Connected":
		return stillConnected(e, g, c, since, now)
	case "":
		return steps.Waits(since, "%s has no status yet. Its gateway has just started", name).Or(gatewayLog(e, g))
	case "Connecting", "Error":
		// Liqo sets Error after 10 s without a ping reply, even if the tunnel was never up. The status remains until a
		// reply arrives (liqotech/liqo v1.2.0: pkg/gateway/connection/conncheck/receiver.go, RunDisconnectObserver).
		return steps.Waits(since, "%s is %s: %s", name, value, unmet(e)).Or(tunnelFix(e, g))
	default:
		return steps.Failed(
			fmt.Sprintf("%s is %s, which is not a known status", name, value), gatewayLog(e, g),
		)
	}
}

// unmet explains why the two gateways do not receive each other's packets.
func unmet(e steps.Env) string {
	if listens(e) {
		return "no packets arrive from the " + e.PeerName() + "'s gateway, or they are encrypted with another key"
	}
	return "the gateway of the " + e.PeerName() +
		" does not answer. UDP is blocked, or one of the keys is wrong"
}

// tunnelFix returns the commands that show the WireGuard handshakes and the log of a gateway.
func tunnelFix(e steps.Env, g *unstructured.Unstructured) string {
	return inTenant(e) + "exec deployment/" + steps.Quoted(gatewayObjectName(g)) +
		" -c wireguard -- wg show    # \"latest handshake\" shows whether a handshake ever succeeded\n" + gatewayLog(e, g)
}

// stillConnected returns the verdict on a Connection whose status is Connected. The verdict is a failure if the gateway
// no longer records pings.
func stillConnected(e steps.Env, g, c *unstructured.Unstructured, since, now time.Time) steps.Result {
	stamp := text(c, "status", "latency", "timestamp")
	at, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return steps.Waits(since, "Connection %s is Connected, but has no ping result yet", placeOf(c)).Or(gatewayLog(e, g))
	}
	due := at.Add(freshWithin)
	if now.After(due) {
		return steps.Failed(
			fmt.Sprintf(
				"Connection %s is Connected, but its last ping was at %s. The gateway no longer updates the Connection",
				placeOf(c), at.Local().Format(time.DateTime),
			),
			gatewayLog(e, g),
		)
	}
	r := steps.Passed("Connected, latency %s", cmp.Or(text(c, "status", "latency", "value"), "(none)"))
	r.Again = time.Now().Add(due.Sub(now))
	return r
}

// clusterNow returns the current time. If the cluster's clock is behind this machine's clock, it returns the time of
// the cluster's clock. The cluster sets the timestamps of its objects, so new timestamps would look old by this
// machine's clock.
func clusterNow(ctx context.Context, e steps.Env) time.Time {
	now := time.Now()
	if v, err := e.Cluster.Version(ctx); err == nil && v.SkewKnown && v.Skew < 0 {
		return now.Add(v.Skew)
	}
	return now
}
