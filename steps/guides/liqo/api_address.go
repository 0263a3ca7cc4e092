package liqo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"carrick/cluster/clean"
	"carrick/steps"
)

const apiAddressSource = "liqotech/liqo: pkg/utils/apiserver/address.go (GetURL), 557c199cf"

// masterLabels lists the labels of control-plane nodes, in the order in which Liqo tries them. If no API server address
// is configured, Liqo uses the address of the first node that it finds with one of these labels.
//
// Source: liqotech/liqo pkg/utils/apiserver/address.go (getMasterNodes), 557c199cf.
var masterLabels = []string{
	"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "node-role.kubernetes.io/controlplane",
}

// addressKnown checks whether the provider's Liqo can determine the API server address that consumers use. On EKS, Liqo
// reads this address from AWS (pkg/identityManager/iamIdentityProvider.go).
func addressKnown(ctx context.Context, e steps.Env) steps.Result {
	d, err := controllerManager(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if name, ok := flagOf(d, "aws-cluster-name"); ok {
		return steps.Passed("Liqo reads the address of EKS cluster %s from AWS", clean.Text(name))
	}
	if address, ok := flagOf(d, "api-server-address-override"); ok && address != "" {
		return steps.Passed("%s, from the Helm value apiServer.address", clean.Text(address))
	}
	nodes, err := physicalNodes(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	fix := withValue(ctx, e, "apiServer.address="+e.Answers.Text("provider.server"))
	for _, label := range masterLabels {
		masters := slices.DeleteFunc(slices.Clone(nodes), func(n *corev1.Node) bool { _, ok := n.Labels[label]; return !ok })
		if len(masters) == 0 {
			continue
		}
		if !slices.ContainsFunc(masters, func(n *corev1.Node) bool { return len(n.Status.Addresses) > 0 }) {
			return steps.Failed(
				fmt.Sprintf("the Helm value apiServer.address is not set, and no node with label %s has an address", label), fix,
			)
		}
		return steps.Passed("address of %s, port 6443", steps.Plural(len(masters), "node")+" with label "+label)
	}
	return steps.Failed(
		"the Helm value apiServer.address is not set, and no node has one of the labels "+strings.Join(masterLabels, ", ")+
			", as is usual on managed clusters. Liqo denies every ResourceSlice", fix,
	)
}
