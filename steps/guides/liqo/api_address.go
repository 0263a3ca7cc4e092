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

// masterLabels are the labels of the nodes whose address Liqo uses as the API server's if none is
// configured. Liqo uses the first label that any node has.
//
// Source: liqotech/liqo pkg/utils/apiserver/address.go (getMasterNodes), 557c199cf.
var masterLabels = []string{
	"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "node-role.kubernetes.io/controlplane",
}

// addressKnown checks whether the provider's Liqo can determine the API server address that
// consumers use. On EKS Liqo gets it from AWS (pkg/identityManager/iamIdentityProvider.go).
func addressKnown(ctx context.Context, e steps.Env) steps.Result {
	d, err := controllerManager(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if name, ok := flagOf(d, "aws-cluster-name"); ok {
		return steps.Passed("Liqo reads the address of EKS cluster %s from AWS", clean.Text(name))
	}
	if address, ok := flagOf(d, "api-server-address-override"); ok && address != "" {
		return steps.Passed("%s, set with apiServer.address", clean.Text(address))
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
				fmt.Sprintf("Liqo was installed without apiServer.address, and no node with label %s has an address", label), fix,
			)
		}
		return steps.Passed("address of %s, port 6443", counted(len(masters), "node")+" with label "+label)
	}
	return steps.Failed(
		"Liqo was installed without apiServer.address, and no node has one of the labels "+strings.Join(masterLabels, ", ")+
			", as on managed clusters. Liqo denies every ResourceSlice", fix,
	)
}
