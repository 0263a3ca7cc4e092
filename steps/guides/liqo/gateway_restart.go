package liqo

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

// gatewayRestart restarts a gateway that uses earlier keys. It deletes the pods, because Liqo overwrites the pod
// template of the Deployment.
func gatewayRestart() []steps.Action {
	return onBothSides("gateway-restart", "Restart the consumer's gateway", "Restart the provider's gateway", steps.Action{
		Needs: []string{"keys"},
		Doer: action.Call{
			Preview: planGatewayRestart, Make: restartGateway,
			// A restart leaves nothing to undo.
			Left:    func(context.Context, steps.Env) (steps.Change, error) { return steps.Change{}, nil },
			Revert:  func(context.Context, steps.Env, steps.Progress) error { return nil },
			Exports: func(context.Context, steps.Env) ([]action.Exported, error) { return nil, nil },
		},
	})
}

func planGatewayRestart(ctx context.Context, e steps.Env) (steps.Change, error) {
	pods, err := outdatedPods(ctx, e)
	if err != nil {
		return steps.Change{}, err
	}
	var out steps.Change
	for _, p := range pods {
		out.Items = append(out.Items, steps.Item{
			Verb: steps.Run, What: restartOf(p), Hash: string(p.UID),
			Note: "uses an earlier private key; the tunnel is interrupted until the new pod runs",
		})
		out.Permissions = append(out.Permissions, permission.Rule{
			Verb: "delete", Resource: "pods", Namespace: p.Namespace, Name: p.Name,
		})
	}
	return out, nil
}

func restartOf(p *corev1.Pod) string { return "restart of Pod " + p.Namespace + "/" + p.Name }

func restartGateway(ctx context.Context, e steps.Env, say steps.Progress) error {
	pods, err := outdatedPods(ctx, e)
	if err != nil {
		return err
	}
	for _, p := range pods {
		if err := e.Cluster.Delete(ctx, check.Pods, p.Namespace, p.Name, p.UID); err != nil {
			return err
		}
		say.Did(steps.Run, restartOf(p), "")
	}
	return nil
}

// outdatedPods returns the pods of this side's gateway that use other keys than those in the Secret: the pod and its
// wireguard container are older than the Secret, or the Secret does not exist. Only that container reads the keys, when
// it starts (liqotech/liqo @ 557c199c: pkg/gateway/tunnel/wireguard/keys.go, device.go;
// deployments/liqo/templates/liqo-wireguard-gateway-server-template.yaml). The clock of a node can differ from that of
// the API server, so the age of the pod counts, too.
func outdatedPods(ctx context.Context, e steps.Env) ([]*corev1.Pod, error) {
	pods, err := gatewayPods(ctx, e)
	if err != nil || len(pods) == 0 {
		return nil, err
	}
	keys, err := gatewayKeyPair(ctx, e)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return nil, err
	}
	var out []*corev1.Pod
	for _, p := range pods {
		at := wireguardSince(p)
		if check.Ended(p) || p.DeletionTimestamp != nil || at.IsZero() {
			continue
		}
		if missing || p.CreationTimestamp.Time.Before(keys.Created) && at.Before(keys.Created) {
			out = append(out, p)
		}
	}
	return out, nil
}

// gatewayPods returns the pods of this side's gateway. It returns nil if the gateway or its Deployment does not exist.
func gatewayPods(ctx context.Context, e steps.Env) ([]*corev1.Pod, error) {
	g, err := sideGateway(ctx, e)
	if steps.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d, err := check.Get[appsv1.Deployment](ctx, e.Cluster, check.Deployments, g.GetNamespace(), gatewayObjectName(g))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return check.PodsOf(ctx, e.Cluster, d)
}

// wireguardSince returns when the wireguard container of a gateway's pod started, or zero if it does not run.
func wireguardSince(p *corev1.Pod) time.Time {
	for _, c := range p.Status.ContainerStatuses {
		if r := c.State.Running; c.Name == "wireguard" && r != nil {
			return r.StartedAt.Time
		}
	}
	return time.Time{}
}

// outdatedKeys returns a failure and true if a pod of the gateway uses earlier keys.
func outdatedKeys(ctx context.Context, e steps.Env) (r steps.Result, is bool) {
	pods, err := outdatedPods(ctx, e)
	if err != nil || len(pods) == 0 {
		return r, false // the key checks report errors
	}
	keys, err := gatewayKeyPair(ctx, e)
	if err != nil {
		return r, false
	}
	p := pods[0]
	r = steps.Failed(
		fmt.Sprintf(
			"pod %s/%s, started at %s, uses an earlier private key. Secret %s was created at %s", p.Namespace, p.Name,
			wireguardSince(p).Local().Format(time.DateTime), keys.Name, keys.Created.Local().Format(time.DateTime),
		),
		inTenant(e)+"delete pod "+steps.Quoted(p.Name),
	)
	r.Made = true
	return r.FixedBy(e.SideName() + "-gateway-restart"), true
}
