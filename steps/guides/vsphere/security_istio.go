package vsphere

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

// Values of the fact istio. They describe how Istio sets up the network of pods with a sidecar.
const (
	istioCNI  = "cni"  // by a DaemonSet on each node
	istioInit = "init" // by an init container in each pod
	noIstio   = "none"
)

const installCNI = "install istio-cni with Kubeflow's manifests (common/istio)"

const (
	istioSpace = "istio-system"
	// istioHooks selects the webhooks of all revisions and tags that inject sidecars (istio/istio:
	// manifests/charts/istio-control/istio-discovery/templates/mutatingwebhook.yaml, revision-tags-mwc.yaml).
	istioHooks = "app=sidecar-injector"
)

// istioParts describes which parts of Istio exist.
type istioParts struct {
	cni    *appsv1.DaemonSet // nil: none
	pilots []string          // Deployments of istiod
	asks   []string          // profile namespaces that request sidecars
}

// injects is the label with which a namespace requests sidecars.
const injects = "istio-injection"

// there reports whether pods get sidecars. The result by describes the evidence.
func (p istioParts) there() (by string, is bool) {
	switch {
	case len(p.pilots) > 0:
		return "Deployment " + check.Some(p.pilots) + " exists", true
	case len(p.asks) > 0:
		return "profile namespaces request sidecars (" + injects + "): " + check.Some(p.asks), true
	}
	return "", false
}

func istio(ctx context.Context, e steps.Env) (istioParts, error) {
	var out istioParts
	err := check.Together(
		func() error {
			sets, err := check.List[appsv1.DaemonSet](ctx, e.Cluster, check.DaemonSets, "", cluster.Selector{})
			i := slices.IndexFunc(sets, func(d *appsv1.DaemonSet) bool { return strings.HasPrefix(d.Name, "istio-cni") })
			if i >= 0 {
				out.cni = sets[i]
			}
			return err
		},
		func() (err error) { out.pilots, err = pilots(ctx, e); return err },
		func() error {
			spaces, err := profileSpaces(ctx, e)
			for _, ns := range spaces {
				if ns.Labels[injects] == "enabled" {
					out.asks = append(out.asks, ns.Name)
				}
			}
			if steps.IsAbsent(err) {
				err = nil
			}
			return err
		},
	)
	return out, err
}

// pilots returns the Deployments of istiod that inject sidecars. It considers only Istio's namespace and the namespaces
// of the Services that injection webhooks call. Any tenant can create a Deployment with istiod's label in another
// namespace.
func pilots(ctx context.Context, e steps.Env) ([]string, error) {
	var all []*appsv1.Deployment
	var hooks []*admissionv1.MutatingWebhookConfiguration
	err := check.Together(
		func() (err error) {
			labels := cluster.Selector{Labels: "app=istiod"}
			all, err = check.List[appsv1.Deployment](ctx, e.Cluster, check.Deployments, "", labels)
			return err
		},
		func() (err error) {
			labels := cluster.Selector{Labels: istioHooks}
			hooks, err = check.List[admissionv1.MutatingWebhookConfiguration](ctx, e.Cluster, check.MutatingWebhooks, "", labels)
			return err
		},
	)
	spaces := []string{istioSpace}
	for _, c := range hooks {
		for _, w := range c.Webhooks {
			if s := w.ClientConfig.Service; s != nil {
				spaces = append(spaces, s.Namespace)
			}
		}
	}
	var out []string
	for _, d := range all {
		if slices.Contains(spaces, d.Namespace) {
			out = append(out, d.Namespace+"/"+d.Name)
		}
	}
	return out, err
}

// learnIstio returns how Istio sets up the network of pods. It ignores the sidecar labels of
// namespaces, because these labels must not affect the default pod security level.
func learnIstio(ctx context.Context, e steps.Env) (any, error) {
	parts, err := istio(ctx, e)
	if err != nil {
		return nil, err
	}
	switch {
	case parts.cni != nil:
		return istioCNI, nil
	case len(parts.pilots) > 0:
		return istioInit, nil
	}
	return noIstio, nil
}

func istioCNIThere(ctx context.Context, e steps.Env) steps.Result {
	parts, err := istio(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if parts.cni == nil {
		by, there := parts.there()
		switch {
		case !there:
			return steps.Passed("Istio is not installed: no istiod, no istio-cni, and no profile namespace requests sidecars")
		case level(e) == check.Privileged:
			return steps.Warned(
				by+
					", but DaemonSet istio-cni-node does not exist. Each pod gets an init container that requires the level "+
					"privileged, which rejects nothing",
				installCNI+"; then "+answer(e, "security.level", check.Baseline),
			)
		}
		return steps.Failed(
			fmt.Sprintf(
				"%s, but DaemonSet istio-cni-node does not exist. Each pod gets an init container, which Pod Security level %s rejects", by,
				level(e),
			),
			installCNI+", or "+answer(e, "security.level", check.Privileged),
		)
	}
	name, s := parts.cni.Namespace+"/"+parts.cni.Name, parts.cni.Status
	if s.NumberReady < s.DesiredNumberScheduled {
		return steps.Warned(
			fmt.Sprintf(
				"DaemonSet %s is ready on %d of %d nodes. On the other nodes, pods start without a network or do not start", name,
				s.NumberReady, s.DesiredNumberScheduled,
			),
			fmt.Sprintf("%s -n %s describe daemonset %s", e.Kubectl(), parts.cni.Namespace, parts.cni.Name),
		)
	}
	return steps.Passed("DaemonSet %s sets up the network of sidecars", name)
}
