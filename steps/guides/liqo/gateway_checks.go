package liqo

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

const (
	serverKind = "GatewayServer"
	clientKind = "GatewayClient"
)

// wantedKind returns the kind of gateway that the answers assign to this side.
func wantedKind(e steps.Env) string {
	if listens(e) {
		return serverKind
	}
	return clientKind
}

// plural returns the full resource name of a kind in Liqo's networking group, such as
// "gatewayservers.networking.liqo.io".
func plural(kind string) string { return strings.ToLower(kind) + "s.networking.liqo.io" }

func ofKind(objs []*unstructured.Unstructured, kind string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, o := range objs {
		if o.GetKind() == kind {
			out = append(out, o)
		}
	}
	return out
}

// longestGateway is the maximum length of a gateway's name. Liqo uses gw-NAME as a label value, and a label value has
// at most 63 characters.
const longestGateway = 60

func oneGateway(ctx context.Context, e steps.Env) steps.Result {
	all, err := sideGateways(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	ns, want := tenantNamespace(e), wantedKind(e)
	right := ofKind(all, want)
	switch {
	case len(all) == 0:
		return steps.Undone(fmt.Sprintf("namespace %s has no gateway yet", ns)).Or(e.ApplyStep("tunnel"))
	case len(all) > 1 && len(right) == len(all):
		return steps.Failed(
			fmt.Sprintf(
				"namespace %s has %d objects of kind %s, but only one is allowed: %s", ns, len(all), want, check.OrNone(names(all)),
			),
			inTenant(e)+"delete "+plural(want)+" "+shellWords(names(all)[1:]),
		)
	case len(all) > 1:
		wrong := wrongGateways(all, want)
		return steps.Failed(
			fmt.Sprintf(
				"namespace %s has a GatewayServer and a GatewayClient (%s). According to the answers, this side needs only a %s",
				ns,
				check.OrNone(names(all)), want,
			),
			inTenant(e)+"delete "+plural(wrong[0].GetKind())+" "+shellWords(names(wrong)),
		)
	case len(right) == 0:
		return otherKind(e, all[0])
	}
	return gatewayFits(e, right[0])
}

func wrongGateways(all []*unstructured.Unstructured, want string) []*unstructured.Unstructured {
	if want == serverKind {
		return ofKind(all, clientKind)
	}
	return ofKind(all, serverKind)
}

// otherKind returns the verdict on a gateway whose kind contradicts the answers. The fix is to change the answer, or to
// delete the gateway if the other side has a gateway of the same kind.
func otherKind(e steps.Env, o *unstructured.Unstructured) steps.Result {
	fact, verb, server := "gateway-server", "listens", e.SideName()
	if o.GetKind() == clientKind {
		fact, verb, server = "gateway-client", "connects", e.PeerName()
	}
	if _, err := e.Peer.Value(fact); err == nil {
		return steps.Failed(
			fmt.Sprintf(
				"%s %s %s, and so does the gateway of the %s. Two such gateways cannot connect to each other", o.GetKind(),
				placeOf(o), verb, e.PeerName(),
			),
			inTenant(e)+"delete "+plural(o.GetKind())+" "+steps.Quoted(o.GetName())+"    # then "+e.ApplyStep("tunnel"),
		)
	}
	return steps.Failed(
		fmt.Sprintf(
			"%s %s %s, but according to the answers the %s listens", o.GetKind(), placeOf(o), verb,
			e.Answers.Text("network.server"),
		),
		"set network.server to "+server+", or: "+inTenant(e)+"delete "+plural(o.GetKind())+" "+steps.Quoted(o.GetName())+
			"    # then "+e.ApplyStep("tunnel"),
	)
}

func gatewayFits(e steps.Env, o *unstructured.Unstructured) steps.Result {
	id, err := peerID(e)
	if err != nil {
		return steps.Errored(err)
	}
	name := o.GetKind() + " " + placeOf(o)
	switch {
	case o.GetLabels()[remoteIDLabel] != id:
		return steps.Failed(
			fmt.Sprintf(
				"%s has the label %s=%s, which must be %s. Liqo ignores this gateway", name, remoteIDLabel,
				cmp.Or(o.GetLabels()[remoteIDLabel], "(none)"), id,
			),
			e.ApplyStep("tunnel"),
		)
	case len(o.GetName()) > longestGateway:
		return steps.Failed(
			fmt.Sprintf(
				"%s has a name of %d characters. Liqo adds the prefix gw-, so at most %d are allowed", name,
				len(o.GetName()), longestGateway,
			),
			inTenant(e)+"delete "+plural(o.GetKind())+" "+steps.Quoted(o.GetName())+"    # then "+e.ApplyStep("tunnel"),
		)
	}
	return steps.Passed("%s", name)
}

// template returns the template that the existing gateway references, or the default template if there is no such
// reference.
func template(
	ctx context.Context, e steps.Env,
) (gvr schema.GroupVersionResource, kind, namespace, name string, err error) {
	gvr, kind, name = serverTemplates, "WgGatewayServerTemplate", "wireguard-server"
	field := "serverTemplateRef"
	if connects(e) {
		gvr, kind, name, field = clientTemplates, "WgGatewayClientTemplate", "wireguard-client", "clientTemplateRef"
	}
	if namespace, err = liqoSpace(e); err != nil {
		return gvr, kind, "", "", err
	}
	all, err := sideGateways(ctx, e)
	if err != nil {
		return gvr, kind, "", "", err
	}
	for _, o := range ofKind(all, wantedKind(e)) {
		if at := text(o, "spec", field, "name"); at != "" {
			return gvr, kind, cmp.Or(text(o, "spec", field, "namespace"), namespace), at, nil
		}
	}
	return gvr, kind, namespace, name, nil
}

func gatewayTemplate(ctx context.Context, e steps.Env) steps.Result {
	gvr, kind, ns, name, err := template(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	_, err = e.Cluster.Get(ctx, gvr, ns, name)
	if err == nil {
		return steps.Passed("%s %s/%s", kind, ns, name)
	}
	if !apierrors.IsNotFound(err) {
		return steps.Errored(err)
	}
	there, err := e.Cluster.List(ctx, gvr, "", cluster.Selector{})
	if err != nil {
		return steps.Failed(fmt.Sprintf("%s %s/%s does not exist", kind, ns, name), e.Kubectl()+" get "+plural(kind)+" -A")
	}
	return steps.Failed(fmt.Sprintf("%s %s/%s does not exist; existing templates: %s", kind, ns, name, placesOf(there)),
		"Helm installs the template if networking.enabled is true: "+e.Helm()+" -n "+steps.Quoted(ns)+
			" get values liqo --all")
}

// Minimum and maximum MTU of a tunnel, in bytes. IPv6 requires at least 1280, and WireGuard adds 80 bytes to each
// packet.
const (
	leastMTU = 1280
	mostMTU  = 1500 - 80
)

func oneMTU(ctx context.Context, e steps.Env) steps.Result {
	all, err := sideGateways(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	right := ofKind(all, wantedKind(e))
	if len(right) == 0 {
		return steps.Skipped("the %s has no %s", e.SideName(), wantedKind(e))
	}
	o, own := right[0], intAt(right[0], "spec", "mtu")
	peer := 0
	for _, fact := range []string{"gateway-server", "gateway-client"} {
		peer = max(peer, factInt(e.Peer.Field(fact, "mtu")))
	}
	name, fix := o.GetKind()+" "+placeOf(o), "set network.mtu (liqoctl uses "+fmt.Sprint(usualMTU)+"), then: "+
		e.ApplyStep("tunnel")
	switch {
	case own == 0:
		return steps.Failed(name+" has no MTU, so the gateway's MTU is 0", fix)
	case peer != 0 && own != peer:
		return steps.Failed(
			fmt.Sprintf("%s has MTU %d, but the gateway of the %s has %d", name, own, e.PeerName(), peer), fix,
		)
	case own < leastMTU:
		return steps.Warned(fmt.Sprintf("%s has MTU %d. IPv6 requires at least %d", name, own, leastMTU), fix)
	case own > mostMTU:
		return steps.Warned(
			fmt.Sprintf("%s has MTU %d. WireGuard adds 80 bytes, so every link on the path must carry %d", name, own, own+80),
			fix,
		)
	case peer == 0:
		return steps.Passed("MTU %d; the %s has no gateway yet", own, e.PeerName())
	}
	return steps.Passed("MTU %d on both sides", own)
}
