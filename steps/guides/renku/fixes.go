package renku

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/check"
)

// takingOver returns the apply command that takes over a field of another tool. Without
// --take-over apply would change nothing.
func takingOver(e steps.Env, step, what string) string {
	return e.ApplyStep(step) + " --take-over    # changes " + what + ", which another user or tool created"
}

// egressName is the name of the egress policy in carrick's manifest and in the published guide.
const egressName = "egress-from-renku-v2-sessions"

// fenceFix returns the fix for network policies. If an unmanaged policy has the same name, apply
// must take it over. "" means the apply command without flags.
func fenceFix(ctx context.Context, e steps.Env) string {
	all, err := check.List[networkingv1.NetworkPolicy](
		ctx, e.Cluster, check.NetworkPolicies, sessionsNamespace(e), cluster.Selector{},
	)
	if err != nil {
		return ""
	}
	for _, p := range all {
		if p.Name == egressName && p.Labels[steps.LinkLabel(e.Link)] == "" {
			return takingOver(e, "prerequisites", "NetworkPolicy "+egressName)
		}
	}
	return ""
}

// storedFix returns the fix that writes the tested kubeconfig under its key of the kubeconfigs
// Secret. A value that another tool wrote is saved before it is taken over, so a backup file
// must be named first. "" means the apply command without flags.
func storedFix(ctx context.Context, e steps.Env) string {
	fields, err := secretFields(ctx, e)
	key := e.Answers.Text("cluster.config-name")
	e.Action = "secret"
	if err != nil || !ownedByOthers(fields, key, e.Manager()) {
		return ""
	}
	run := e.ApplyStep("secret") + " --take-over"
	if file := e.Answers.Text("secret.backup"); file != "" {
		return run + "    # another user or tool wrote the key: its value is saved in " + file + " first"
	}
	return fmt.Sprintf(
		"another user or tool wrote the key. To save its value first, add under answers in %s\n  secret.backup: "+
			"%s.before\nthen: %s",
		e.LinkFile(), key, run,
	)
}

// fieldsKept is how long the field owners of the Secret are cached. They are read only after a
// check has failed.
const fieldsKept = 10 * time.Second

func secretFields(ctx context.Context, e steps.Env) ([]metav1.ManagedFieldsEntry, error) {
	ns, name := secretWhere(e)
	return tracked.Look(
		ctx, "who-wrote/"+ns+"/"+name, fieldsKept, func(ctx context.Context) ([]metav1.ManagedFieldsEntry, error) {
			found, err := e.Cluster.Find(ctx, check.Secrets, ns, cluster.Selector{Fields: "metadata.name=" + name})
			if err != nil || len(found) == 0 {
				return nil, err
			}
			return found[0].ManagedFields, nil
		},
	)
}

// alikeFix returns the fix that gives the remote cluster the same operator and session CRD as
// the local one. If the operator's version is correct but the CRD is not from the operator's
// release, no Helm upgrade replaces the CRD. Then byHand is true: the CRD's owner must replace
// it manually.
func alikeFix(ctx context.Context, e steps.Env, there seen) (fix string, byHand bool) {
	version := e.Answers.Text("operator.version")
	crd, err := crdOf(ctx, e)
	if err != nil || there.version() != version {
		return versionFix(e, "operator", operatorChart), false
	}
	notes := crd.GetAnnotations()
	owned := notes["meta.helm.sh/release-name"] == e.Answers.Text("operator.release") &&
		notes["meta.helm.sh/release-namespace"] == sessionsNamespace(e)
	if owned && isOurs(e.Own, "operator-stands") {
		return "", false
	}
	return helmTemplate(e, operatorChart, version) + " --show-only templates/amaltheasession-crd.yaml | " + e.Kubectl() +
		" apply --server-side --force-conflicts -f -", true
}

// helmTemplate returns the command that prints a chart's objects.
func helmTemplate(e steps.Env, name, version string) string {
	switch from := strings.TrimRight(e.Answers.Text("charts.source"), "/"); {
	case strings.HasPrefix(from, "oci://"):
		return "helm template x " + steps.Quoted(from+"/"+name) + " --version " + version
	case isRemoteSource(from):
		return "helm template x " + name + " --repo " + steps.Quoted(from) + " --version " + version
	default:
		return "helm template x " + steps.Quoted(from+"/"+name)
	}
}

// tolerating returns the command that allows an unmanaged csi-rclone to run on nodes with
// taints.
func tolerating(e steps.Env, nodes []*corev1.Node) string {
	list, err := json.Marshal(tolerationsFor(nodes))
	if err != nil || len(tolerationsFor(nodes)) == 0 {
		return e.Kubectl() +
			" get pods -A -l app=csi-nodeplugin-rclone -o wide    # the nodes have no taints: see why its pods do not run there"
	}
	const fact = "driver-stands"
	return fmt.Sprintf(
		"helm upgrade %s renku/%s -n %s%s --version %s --reuse-values --set-json 'csiNodepluginRclone.tolerations=%s'",
		steps.Quoted(clean.Name(cmp.Or(e.Own.FieldText(fact, "release"), driverChart))), driverChart,
		cmp.Or(e.Own.FieldText(fact, "namespace"), rcloneSpace), helmSide(e), e.Answers.Text("driver.version"), list,
	)
}

// operatorFix returns the fix that applies the step operator if an unmanaged chart has another
// version. Without the flag apply would change nothing, not even carrick's own releases. ""
// means the apply command without flags.
func operatorFix(e steps.Env) string {
	for _, c := range []struct{ what, fact, name string }{
		{"operator", "amalthea", operatorChart}, {"driver", "csi-rclone", driverChart},
	} {
		if c.what == "driver" && !mountsConnectors(e) {
			continue
		}
		there, err := seenOf(e.Own, c.fact)
		if err == nil && there.release != "" && there.release != e.Answers.Text(c.what+".version") {
			if fix := versionFix(e, c.what, c.name); fix != "" {
				return fix
			}
		}
	}
	return ""
}
