package liqo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/kubeconfig"
	"carrick/steps"
	"carrick/steps/check"
)

// controlPlaneHeld verifies that Liqo finds exactly one control-plane kubeconfig Secret for the provider. Like Liqo, it
// searches all namespaces. If two such Secrets exist, Liqo uses neither. If listing the Secrets of all namespaces is
// forbidden, the result is unknown.
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
				`keep the Secret in %[3]s and delete the Secret of the older peering: %[1]s -n NAMESPACE patch secret NAME --type merge -p '{"metadata":{"finalizers":null,"labels":{%[2]q:null}}}' && %[1]s -n NAMESPACE delete secret NAME`,
				e.Kubectl(), identityLabel, ns,
			)+
				"\n"+e.Kubectl()+" -n "+liqoSpaceOf(e.Own)+
				" rollout restart deployment liqo-crd-replicator    # the replicator has stopped and resumes only after a restart",
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
	// The provider's existing tenant namespace takes precedence over the namespace in the answers.
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

// noControlPlane returns the verdict for the case where no Secret is labelled as the control-plane kubeconfig for the
// provider. If a Secret contains a kubeconfig but has missing or wrong labels, the verdict names that Secret.
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
				lacks = append(lacks, fmt.Sprintf("label %s is %q, not %s", label[0], got, label[1]))
			}
		}
		if len(lacks) == 0 {
			return controlPlaneEnding(ctx, e, s)
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

// controlPlaneEnding returns the verdict for a Secret with the right labels that is being deleted. Liqo's replicator
// removes its finalizer only when it replicates no objects any more (liqotech/liqo v1.2.0:
// internal/crdReplicator/crdReplicator-operator.go, Reconcile and stopReflector). A new Secret with the same kubeconfig
// continues the replication.
func controlPlaneEnding(ctx context.Context, e steps.Env, s *cluster.Secret) steps.Result {
	what := "Secret " + s.Namespace + "/" + s.Name
	o, err := e.Cluster.Get(ctx, check.Secrets, s.Namespace, s.Name)
	switch {
	case apierrors.IsNotFound(err):
		return steps.Undone(what + " does not exist")
	case err != nil:
		return steps.Errored(err)
	case o.GetDeletionTimestamp() == nil:
		return steps.Waits(s.Created, "%s is new", what)
	case !slices.Equal(o.GetFinalizers(), []string{"crdreplicator.liqo.io/operator"}):
		return steps.Failed(
			fmt.Sprintf("%s is being deleted (finalizers %s)", what, check.OrNone(o.GetFinalizers())),
			inTenant(e)+"describe secret "+steps.Quoted(s.Name),
		).WithoutAction()
	}
	patch := fmt.Sprintf(`patch secret %s --type merge -p '{"metadata":{"finalizers":null}}'`, steps.Quoted(s.Name))
	return steps.Failed(
		what+" is being deleted, which Liqo's replicator blocks as long as it replicates objects",
		inTenant(e)+patch+" && carrick apply "+e.LinkFile(),
	).WithoutAction()
}

// asProved verifies that s, the Secret that Liqo reads, contains the kubeconfig that carrick has tested. The verdict
// reveals no secrets.
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
		return steps.Passed("%s has AWS keys", what)
	}
	if err != nil {
		return steps.Failed(
			what+" has no usable kubeconfig: "+strings.TrimPrefix(err.Error(), "kubeconfig: "), kubeconfigFix(e, ""),
		)
	}
	b, err := check.Kubeconfig(e, kubeconfigName)
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) {
		return steps.Warned(
			what+" has a kubeconfig, but carrick has no tested kubeconfig to compare it with: "+absent.Error(),
			"carrick apply "+e.LinkFile(),
		)
	}
	if err != nil {
		return unparsed(err)
	}
	if other := otherParts(a, b); len(other) > 0 {
		return steps.Failed(what+" has a kubeconfig that differs from the tested kubeconfig: "+strings.Join(other, ", "), "")
	}
	return steps.Passed("%s, %s", what, held.Hash())
}

// otherParts lists the differences between two kubeconfigs without revealing secrets. It ignores the names of contexts.
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

// apiServerSeen checks the condition APIServerStatus of a ForeignCluster. To set this condition, Liqo requests /livez
// from the provider with the control-plane kubeconfig, which Liqo finds through an Identity or, since v1.0.2, in a
// Secret. A new Secret does not trigger the request. Liqo sends the request when another object of the peering changes,
// or after at most ten hours.
//
// Source: liqotech/liqo v1.2.0, pkg/liqo-controller-manager/core/foreigncluster-controller: status.go
// (handleAuthenticationModuleStatus), apiserverchecker.go and foreigncluster_controller.go (SetupWithManager).
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
	return steps.Skipped(
		"ForeignCluster %s does not exist yet. Liqo reports there whether its pods reach the API server", id,
	)
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
			" rollout restart deployment liqo-controller-manager    # if the credential was renewed, because Liqo still uses " +
			"the old credential")
	}
	if e.Side == steps.Remote {
		return steps.Skipped(
			"%s has no condition APIServerStatus: the %s has no kubeconfig for the %s", what, e.SideName(), e.PeerName(),
		)
	}
	return steps.Skipped(
		"%s has no condition APIServerStatus yet. Liqo 1.0.2 or later sets the condition when the tunnel or a virtual "+
			"node changes",
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
