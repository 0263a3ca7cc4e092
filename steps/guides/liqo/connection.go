package liqo

import (
	"cmp"
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
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
		r := connectionSays(e, g, c, clusterNow(ctx, e))
		if r.Status == steps.Fail || r.Status == steps.Waiting {
			if old, is := outdatedKeys(ctx, e, g); is {
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

// outdatedKeys returns a failure and true if a pod of the gateway started before the Secret with the gateway's keys was
// created. Such a pod uses earlier keys, because a gateway reads its private key only when it starts (liqotech/liqo @
// 557c199c: pkg/gateway/tunnel/wireguard/keys.go, device.go).
func outdatedKeys(ctx context.Context, e steps.Env, g *unstructured.Unstructured) (r steps.Result, is bool) {
	keys, err := gatewayKeyPair(ctx, e)
	if err != nil {
		return r, false // the key checks report this error
	}
	d, err := check.Get[appsv1.Deployment](ctx, e.Cluster, check.Deployments, g.GetNamespace(), gatewayObjectName(g))
	if err != nil {
		return r, false
	}
	labels := cluster.Selector{Labels: metav1.FormatLabelSelector(d.Spec.Selector)}
	pods, err := check.List[corev1.Pod](ctx, e.Cluster, check.Pods, d.Namespace, labels)
	if err != nil {
		return steps.Errored(err), true
	}
	for _, p := range pods {
		if p.DeletionTimestamp == nil && p.Status.StartTime != nil && p.Status.StartTime.Time.Before(keys.Created) {
			return steps.Failed(fmt.Sprintf("pod %s/%s, started at %s, uses an earlier private key. Secret %s was created at %s",
				p.Namespace, p.Name, p.Status.StartTime.Local().Format(time.DateTime),
				keys.Name, keys.Created.Local().Format(time.DateTime)),
				inTenant(e)+"rollout restart deployment/"+steps.Quoted(d.Name)), true
		}
	}
	return r, false
}

func gatewayLog(e steps.Env, g *unstructured.Unstructured) string {
	return inTenant(e) + "logs deployment/" + steps.Quoted(gatewayObjectName(g)) + " --all-containers --tail=30"
}

func connectionSays(e steps.Env, g, c *unstructured.Unstructured, now time.Time) steps.Result {
	name := "Connection " + placeOf(c)
	switch value := text(c, "status", "value"); value {
	case "Connected":
		return stillConnected(e, g, c, now)
	case "":
		return steps.Waits(
			c.GetCreationTimestamp().Time, "%s has no status yet. Its gateway has just started", name,
		).Or(gatewayLog(e, g))
	case "Connecting", "Error":
		// Liqo sets Error after 10 s without a ping reply, even if the tunnel was never up. The status remains until a
		// reply arrives (liqotech/liqo v1.2.0: pkg/gateway/connection/conncheck/receiver.go, RunDisconnectObserver).
		return steps.Waits(c.GetCreationTimestamp().Time, "%s is %s: %s", name, value, unmet(e)).Or(tunnelFix(e, g))
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
func stillConnected(e steps.Env, g, c *unstructured.Unstructured, now time.Time) steps.Result {
	stamp := text(c, "status", "latency", "timestamp")
	at, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return steps.Waits(
			c.GetCreationTimestamp().Time, "Connection %s is Connected, but has no ping result yet", placeOf(c),
		).Or(gatewayLog(e, g))
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
