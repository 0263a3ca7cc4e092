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

// takingOver is that command where a field of somebody else is in the way:
// without the flag it would change nothing.
func takingOver(e steps.Env, step, what string) string {
	return e.ApplyStep(step) + " --take-over    # changes " + what + ", which somebody else made"
}

// egressName is the egress policy of carrick's manifest, and of the published
// guide.
const egressName = "egress-from-renku-v2-sessions"

// fenceFix is how policies come to be as they should: where somebody else's has
// the same name, it has to be taken over. "" is the step as it is.
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

// storedFix is how the key of the kubeconfigs Secret comes to hold the proved
// kubeconfig. A value of somebody else's is saved before it is taken over, so a
// file has to be named first. "" is the step as it is.
func storedFix(ctx context.Context, e steps.Env) string {
	fields, err := secretFields(ctx, e)
	key := e.Answers.Text("cluster.config-name")
	e.Action = "secret"
	if err != nil || !ownedByOthers(fields, key, e.Manager()) {
		return ""
	}
	run := e.ApplyStep("secret") + " --take-over"
	if file := e.Answers.Text("secret.backup"); file != "" {
		return run + "    # somebody else wrote the key: what stands there is saved in " + file + " first"
	}
	return fmt.Sprintf(
		"somebody else wrote the key, so carrick saves what stands there first: under answers in %s "+
			"write\n  secret.backup: %s.before\nthen: %s",
		e.LinkFile(), key, run,
	)
}

// fieldsKept is how long it is remembered who wrote the Secret: it is asked
// only where a check has failed.
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

// alikeFix is how the operator and the definition of a session come to be those
// of the local cluster. Where the version is right and the definition is not
// the operator's release's, no release brings another one: its owner, or
// whoever applied it, has to: then it is done by hand.
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

// helmTemplate is the command that prints a chart's objects.
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

// tolerating is the command that has a csi-rclone of somebody else run on nodes
// with taints.
func tolerating(e steps.Env, nodes []*corev1.Node) string {
	list, err := json.Marshal(tolerationsFor(nodes))
	if err != nil || len(tolerationsFor(nodes)) == 0 {
		return e.Kubectl() +
			" get pods -A -l app=csi-nodeplugin-rclone -o wide    # the nodes have no taint: what keeps its pods off them?"
	}
	const fact = "driver-stands"
	return fmt.Sprintf(
		"helm upgrade %s renku/%s -n %s%s --version %s --reuse-values --set-json 'csiNodepluginRclone.tolerations=%s'",
		steps.Quoted(clean.Name(cmp.Or(e.Own.FieldText(fact, "release"), driverChart))), driverChart,
		cmp.Or(e.Own.FieldText(fact, "namespace"), rcloneSpace), helmSide(e), e.Answers.Text("driver.version"), list,
	)
}

// operatorFix is how the step operator is done where a chart of somebody else
// stands in another version: without the flag it would change nothing, not even
// what is carrick's alone. "" is the step as it is.
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
