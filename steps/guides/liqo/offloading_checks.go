package liqo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"carrick/steps"
	"carrick/steps/check"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const offloadingSource = "liqotech/liqo: pkg/liqo-controller-manager/offloading/namespaceoffloading-controller/status.go"

func offloadingChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "offloading-namespace", Title: "The namespace can be offloaded", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "Namespaces of Kubernetes and Liqo must stay local, and the name on the provider cannot change after " +
				"offloading.",
			References: []string{page, "liqotech/liqo: pkg/webhooks/namespaceoffloading, pkg/webhooks/pod"},
			Run:        canExtend,
		},
		{
			Name: "remote-namespace", Title: "The remote namespace name is free or used by this peering", On: steps.Remote,
			Needs:      []string{"tenant-namespace"},
			Why:        "Liqo never takes over a namespace that it did not create, and retries indefinitely.",
			References: []string{"liqotech/liqo: pkg/liqo-controller-manager/offloading/namespacemap-controller/enforcement.go"},
			Run:        remoteNamespaceFree,
		},
		{
			Name: "offloading-ready", Title: "The namespace is offloaded to the provider", On: steps.Local,
			FixedBy: "offloading",
			Needs:   []string{"offloading-namespace", "virtual-node"}, Timeout: 60 * time.Second,
			Why: "Until then, pods stay on the consumer, because Liqo's webhook does not add the virtual node's " +
				"toleration.",
			References: []string{page, offloadingSource},
			Run:        offloadingReady,
		},
		{
			Name: "pods-before-offloading", Title: "No pod from before the offloading is pending", On: steps.Local,
			Needs:      []string{"offloading-ready"},
			Why:        "Only new pods get the toleration for virtual nodes; older pods stay Pending indefinitely.",
			References: []string{page, "https://github.com/liqotech/liqo/issues/924"},
			Run:        olderPods,
		},
	}
}

const longestNamespace = 63

func canExtend(ctx context.Context, e steps.Env) steps.Result {
	name := e.Answers.Text("offloading.namespace")
	if why := ownNamespace(e, name); why != "" {
		return steps.Failed("namespace "+name+" "+why, "set offloading.namespace to a namespace of your workloads")
	}
	id, err := e.Own.Text("cluster-id")
	if err != nil {
		return steps.Errored(err)
	}
	remote := remoteSpaceName(e, name, id)
	if len(remote) > longestNamespace {
		return steps.Failed(
			fmt.Sprintf(
				"the namespace's name on the provider, %s, would have %d characters, but Kubernetes allows only %d", remote,
				len(remote),
				longestNamespace,
			),
			"set offloading.mapping to SelectedName and offloading.remote-name to a shorter name, or offload another namespace",
		)
	}
	var ns, o *unstructured.Unstructured
	err = check.Together(
		func() (err error) { ns, err = present(ctx, e, check.Namespaces, "", name); return err },
		func() (err error) { o, err = present(ctx, e, namespaceOffloadings, name, offloadingName); return err },
	)
	if err != nil {
		return steps.Errored(err)
	}
	switch {
	case ns == nil:
		return steps.Passed("namespace %s does not exist yet; its name on the provider will be %s", name, remote)
	case ns.GetDeletionTimestamp() != nil:
		return steps.Failed(
			fmt.Sprintf(
				"namespace %s is being deleted (finalizers %s)", name,
				check.OrNone(append(ns.GetFinalizers(), stringsAt(ns, "spec", "finalizers")...)),
			),
			e.Kubectl()+" get namespace "+name+" -o yaml    # the conditions show the remaining contents",
		)
	case ns.GetLabels()[tenantLabel] != "":
		return steps.Failed(
			"namespace "+name+" is a tenant namespace of Liqo", "set offloading.namespace to a namespace of your workloads",
		)
	case o == nil && ns.GetLabels()[scheduledLabel] == "true":
		return steps.Failed(
			fmt.Sprintf(
				"namespace %s has the label %s: \"true\" but is not offloaded. Liqo's webhook rejects every pod in it", name,
				scheduledLabel,
			),
			e.Kubectl()+" label namespace "+name+" "+scheduledLabel+"-    # Liqo sets the label automatically",
		)
	case o != nil:
		return unchangeable(e, name, remote, o)
	}
	return steps.Passed("namespace %s exists; its name on the provider will be %s", name, remote)
}

// unchangeable verifies that the immutable mapping of an existing NamespaceOffloading matches
// the answers.
func unchangeable(e steps.Env, name, remote string, o *unstructured.Unstructured) steps.Result {
	stands, meant := text(o, "spec", "namespaceMappingStrategy"), e.Answers.Text("offloading.mapping")
	if stands == "" {
		stands = "DefaultName"
	}
	if stands != meant {
		return steps.Failed(
			fmt.Sprintf(
				"namespace %s is offloaded with mapping %s, but offloading.mapping is %s. Liqo does not allow a change of "+
					"the mapping", name, stands, meant,
			),
			"set offloading.mapping to "+stands+"; or undo the offloading first: carrick undo "+e.LinkFile()+
				" --step offloading",
		)
	}
	if had := text(o, "spec", "remoteNamespaceName"); meant == "SelectedName" && had != remote {
		return steps.Failed(
			fmt.Sprintf(
				"namespace %s is named %s on the provider, but offloading.remote-name is %s. Liqo does not allow a change "+
					"of the name", name, had,
				remote,
			),
			"set offloading.remote-name to "+had+"; or undo the offloading first: carrick undo "+e.LinkFile()+
				" --step offloading",
		)
	}
	return steps.Passed("namespace %s is offloaded as %s", name, remote)
}

// ownNamespace returns the reason why a namespace must not be offloaded, or "" if it can be offloaded.
func ownNamespace(e steps.Env, name string) string {
	switch {
	case strings.HasPrefix(name, "kube-"):
		return "belongs to Kubernetes"
	case name == liqoSpaceOf(e.Own):
		return "belongs to Liqo"
	case name == tenantNamespace(e):
		return "is the tenant namespace of this peering"
	}
	return ""
}

// remoteSpaceName returns the name that an offloaded namespace has on the provider.
func remoteSpaceName(e steps.Env, name, consumerID string) string {
	switch e.Answers.Text("offloading.mapping") {
	case "EnforceSameName":
		return name
	case "SelectedName":
		return e.Answers.Text("offloading.remote-name")
	}
	return name + "-" + consumerID
}

func remoteNamespaceFree(ctx context.Context, e steps.Env) steps.Result {
	id, err := peerID(e)
	if err != nil {
		return steps.Errored(err)
	}
	name := remoteSpaceName(e, e.Answers.Text("offloading.namespace"), id)
	ns, err := present(ctx, e, check.Namespaces, "", name)
	if err != nil {
		return steps.Errored(err)
	}
	if ns == nil {
		return steps.Passed("namespace %s does not exist yet", name)
	}
	if owner := ns.GetAnnotations()[remoteSpaceOwner]; !strings.HasPrefix(owner, tenantNamespace(e)+"/") {
		whose := "Liqo did not create it"
		if owner != "" {
			whose = "Liqo created it for " + owner
		}
		return steps.Failed(fmt.Sprintf("namespace %s exists, and %s. Liqo does not use it for this peering", name, whose),
			"set offloading.mapping to SelectedName and offloading.remote-name to a free name; or, if the namespace is unused: "+
				e.Kubectl()+" delete namespace "+name)
	}
	return steps.Passed("namespace %s belongs to this peering", name)
}
