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

// takingOver returns an apply command with --take-over. Without this flag, apply does not change
// objects that another user or tool created. The parameter what is the object's kind and name.
func takingOver(e steps.Env, step, what string) string {
	return e.ApplyStep(step) + " --take-over    # changes " + what + ", which another user or tool created"
}

// egressName is the name of the egress policy, both in carrick's manifest and in the published
// guide.
const egressName = "egress-from-renku-v2-sessions"

// fenceFix returns the fix for missing or incorrect network policies. If an unmanaged policy has
// the name of carrick's egress policy, the fix takes over that policy. Otherwise the fix is "",
// which means the apply command without flags.
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

// storedFix returns the fix for a kubeconfigs Secret that does not contain the tested kubeconfig.
// If another user or tool wrote the key, the fix takes over the key, and secret.backup must name a
// backup file for the old value. Otherwise the fix is "", which means the apply command without
// flags.
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

// fieldsAge is how long the field owners of the Secret are cached.
const fieldsAge = 10 * time.Second

func secretFields(ctx context.Context, e steps.Env) ([]metav1.ManagedFieldsEntry, error) {
	ns, name := secretWhere(e)
	return tracked.Look(
		ctx, "who-wrote/"+ns+"/"+name, fieldsAge, func(ctx context.Context) ([]metav1.ManagedFieldsEntry, error) {
			found, err := e.Cluster.Find(ctx, check.Secrets, ns, cluster.Selector{Fields: "metadata.name=" + name})
			if err != nil || len(found) == 0 {
				return nil, err
			}
			return found[0].ManagedFields, nil
		},
	)
}

// alikeFix returns the fix for an operator or session CRD that differs from the local cluster's. If
// the operator has the correct version but its release does not own the CRD, no Helm upgrade
// replaces the CRD. In this case manual is true, and the fix is a command for the owner of the CRD.
func alikeFix(ctx context.Context, e steps.Env, there seen) (fix string, manual bool) {
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

// tolerating returns a helm upgrade command for an unmanaged csi-rclone release. The command adds
// tolerations for the nodes' taints.
func tolerating(e steps.Env, nodes []*corev1.Node) string {
	list, err := json.Marshal(tolerationsFor(nodes))
	if err != nil || len(tolerationsFor(nodes)) == 0 {
		return e.Kubectl() +
			" get pods -A -l app=csi-nodeplugin-rclone -o wide    # the nodes have no taints: find out why the driver's pods " +
			"do not run on them"
	}
	const fact = "driver-stands"
	return fmt.Sprintf(
		"helm upgrade %s renku/%s -n %s%s --version %s --reuse-values --set-json 'csiNodepluginRclone.tolerations=%s'",
		steps.Quoted(clean.Name(cmp.Or(e.Own.FieldText(fact, "release"), driverChart))), driverChart,
		cmp.Or(e.Own.FieldText(fact, "namespace"), rcloneSpace), helmSide(e), e.Answers.Text("driver.version"), list,
	)
}

// operatorFix returns the fix for the step operator. If an unmanaged release of the operator or the
// driver has another version, the fix takes over the release. Without --take-over, apply would
// change nothing in this step, not even carrick's own releases. Otherwise the fix is "", which
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
