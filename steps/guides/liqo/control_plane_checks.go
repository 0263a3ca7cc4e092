package liqo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/kubeconfig"
	"carrick/steps"
	"carrick/steps/check"
)

// controlPlaneHeld checks all namespaces, as Liqo does: if a second Secret exists anywhere,
// Liqo uses neither. If listing all namespaces is forbidden, the result is unknown.
func controlPlaneHeld(ctx context.Context, e steps.Env) steps.Result {
	sel, err := controlPlaneSelector(e)
	if err != nil {
		return steps.Errored(err)
	}
	if _, err := e.Cluster.Secrets(ctx, "", sel, kubeconfigField); err != nil {
		return steps.Errored(err)
	}
	found, err := living(ctx, e, check.Secrets, "", sel.Labels)
	if err != nil {
		return steps.Errored(err)
	}
	ns := tenantNamespace(e)
	switch {
	case len(found) == 0:
		return noControlPlane(ctx, e)
	case len(found) > 1:
		return steps.Failed(
			fmt.Sprintf(
				"%d Secrets are labelled as the control-plane kubeconfig for the provider: %s. Liqo accepts only one per cluster",
				len(found),
				check.OrNone(places(found)),
			),
			fmt.Sprintf(
				`keep the one in %[3]s, delete that of an older peering: %[1]s -n NAMESPACE patch secret NAME --type merge -p '{"metadata":{"finalizers":null,"labels":{%[2]q:null}}}' && %[1]s -n NAMESPACE delete secret NAME`,
				e.Kubectl(), identityLabel, ns,
			)+
				"\n"+e.Kubectl()+" -n "+liqoSpaceOf(e.Own)+
				" rollout restart deployment liqo-crd-replicator    # it has stopped replicating and resumes only after a restart",
		)
	case found[0].GetNamespace() != ns:
		return steps.Failed(
			fmt.Sprintf(
				"Secret %s is not in the tenant namespace %s", check.OrNone(places(found)), ns,
			),
			e.Kubectl()+" -n "+steps.Quoted(found[0].GetNamespace())+" delete secret "+steps.Quoted(found[0].GetName())+
				"    # then "+e.ApplyStep("authentication"),
		)
	}
	// The existing namespace counts, whatever the answer is.
	space, err := e.Peer.Text("tenant-namespace")
	if err != nil {
		space = peerNamespace(e)
	}
	what := "Secret " + ns + "/" + found[0].GetName()
	if note, ok := found[0].GetAnnotations()[remoteSpaceNote]; !ok || note != space {
		says := fmt.Sprintf("has no annotation %s", remoteSpaceNote)
		if ok {
			says = fmt.Sprintf("is for the provider's namespace %q", note)
		}
		return steps.Failed(fmt.Sprintf("%s %s; the tenant namespace on the provider is %s", what, says, space), "")
	}
	return asProved(ctx, e, found[0], what)
}

func places(objs []*unstructured.Unstructured) []string {
	var out []string
	for _, o := range objs {
		out = append(out, o.GetNamespace()+"/"+o.GetName())
	}
	slices.Sort(out)
	return out
}

// noControlPlane reports Secrets that contain a kubeconfig but have not all labels.
func noControlPlane(ctx context.Context, e steps.Env) steps.Result {
	ns := tenantNamespace(e)
	id, err := peerID(e)
	if err != nil {
		return steps.Errored(err)
	}
	all, err := e.Cluster.Secrets(ctx, ns, cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	for _, s := range all {
		if s.Keys[kubeconfigField] == 0 || s.Labels[identityLabel] == "ResourceSlice" {
			continue
		}
		var lacks []string
		for _, label := range [][2]string{{identityLabel, controlPlaneType}, {remoteIDLabel, id}} {
			if got := s.Labels[label[0]]; got != label[1] {
				lacks = append(lacks, fmt.Sprintf("%s is %q, not %s", label[0], got, label[1]))
			}
		}
		return steps.Failed(
			fmt.Sprintf("Secret %s/%s has a kubeconfig that Liqo does not find: %s", ns, s.Name, strings.Join(lacks, "; ")),
			fmt.Sprintf(
				"%s -n %s label --overwrite secret %s %s=%s %s=%s", e.Kubectl(), ns, steps.Quoted(s.Name), identityLabel,
				controlPlaneType, remoteIDLabel, id,
			),
		)
	}
	return steps.Undone("no Secret in " + ns + " is labelled as the kubeconfig for the provider")
}

// asProved compares the kubeconfig that Liqo reads with the tested one, and reveals neither.
func asProved(ctx context.Context, e steps.Env, s *unstructured.Unstructured, what string) steps.Result {
	held, err := storedKubeconfig(ctx, e, s.GetName())
	if err != nil {
		return steps.Errored(err)
	}
	if held.IsZero() {
		return steps.Failed(what+" has no key "+kubeconfigField, "")
	}
	a, err := kubeconfig.Parse([]byte(held.Reveal()))
	if err != nil && e.Own.Field("control-plane", "aws") == true {
		return steps.Passed("%s, with AWS keys", what)
	}
	if err != nil {
		return steps.Failed(
			what+" has no usable kubeconfig: "+strings.TrimPrefix(err.Error(), "kubeconfig: "), kubeconfigFix(e, ""),
		)
	}
	b, err := check.Kubeconfig(e, kubeconfigName)
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) {
		return steps.Warned(
			what+" has a kubeconfig, but carrick has none to compare it with: "+absent.Error(), "carrick apply "+e.LinkFile(),
		)
	}
	if err != nil {
		return unparsed(err)
	}
	if other := otherParts(a, b); len(other) > 0 {
		return steps.Failed(what+" has a kubeconfig that differs from the tested one: "+strings.Join(other, ", "), "")
	}
	return steps.Passed("%s, %s", what, held.Hash())
}

// otherParts names the differences between two kubeconfigs and reveals no secret of either.
// Names of contexts are ignored.
func otherParts(a, b kubeconfig.Config) []string {
	var out []string
	for _, part := range []struct {
		what string
		same bool
	}{
		{"server " + a.Server, a.Server == b.Server},
		{"another CA", bytes.Equal(bytes.TrimSpace(a.CA), bytes.TrimSpace(b.CA))},
		{"another token", a.Token == b.Token},
		{"another client certificate", bytes.Equal(bytes.TrimSpace(a.ClientCert), bytes.TrimSpace(b.ClientCert))},
		{"another client key", strings.TrimSpace(a.ClientKey.Reveal()) == strings.TrimSpace(b.ClientKey.Reveal())},
		{"another tls-server-name or proxy-url", a.TLSServerName == b.TLSServerName && a.ProxyURL == b.ProxyURL},
	} {
		if !part.same {
			out = append(out, part.what)
		}
	}
	return out
}

// apiServerSeen judges the condition APIServerStatus of a ForeignCluster. Liqo requests /livez with
// the kubeconfig of the control plane: that of an Identity or, since v1.0.2, of a Secret. A new
// Secret does not trigger this request. The condition appears with the next change of another
// object of the peering, or after at most ten hours.
//
// Source: liqotech/liqo v1.2.0, pkg/liqo-controller-manager/core/foreigncluster-controller:
// status.go (handleAuthenticationModuleStatus), apiserverchecker.go and
// foreigncluster_controller.go (SetupWithManager).
func apiServerSeen(ctx context.Context, e steps.Env) steps.Result {
	id, err := peerID(e)
	if err != nil {
		return steps.Errored(err)
	}
	found, err := living(ctx, e, foreignClusters, "", "")
	if err != nil {
		return steps.Errored(err)
	}
	for _, fc := range found {
		if text(fc, "spec", "clusterID") == id {
			return judgeSeen(e, fc)
		}
	}
	return steps.Skipped("ForeignCluster %s, where Liqo reports it, does not exist yet", id)
}

func judgeSeen(e steps.Env, fc *unstructured.Unstructured) steps.Result {
	what := "ForeignCluster " + fc.GetName()
	conditions, _, _ := unstructured.NestedSlice(fc.Object, "status", "conditions")
	for _, c := range conditions {
		m, _ := c.(map[string]any)
		if m["type"] != "APIServerStatus" {
			continue
		}
		if m["status"] == "Established" {
			return steps.Passed("%s: Established", what)
		}
		stamp, _ := m["lastTransitionTime"].(string)
		since, err := time.Parse(time.RFC3339, stamp)
		if err != nil {
			since = fc.GetCreationTimestamp().Time
		}
		return steps.Waits(
			since, "%s: APIServerStatus is %v (%v)", what, m["status"], conditionMessage(m),
		).Or(liqoLog(e, "controller-manager") + "    # also check that no firewall blocks egress of Liqo's pods\n" +
			e.Kubectl() + " -n " + liqoSpaceOf(e.Own) +
			" rollout restart deployment liqo-controller-manager    # if the credential was renewed: Liqo still uses " +
			"the old one")
	}
	if e.Side == steps.Remote {
		return steps.Skipped(
			"%s has no condition APIServerStatus: the %s has no kubeconfig for the %s", what, e.SideName(), e.PeerName(),
		)
	}
	return steps.Skipped(
		"%s has no condition APIServerStatus yet. Liqo 1.0.2 or later sets it when the tunnel or a virtual node changes",
		what,
	)
}

func conditionMessage(condition map[string]any) string {
	m, _ := condition["message"].(string)
	if m == "" {
		m = "no message"
	}
	return m
}
