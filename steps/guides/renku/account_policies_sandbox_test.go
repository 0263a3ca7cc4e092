package renku_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/stepstest"
)

const operatorsSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: operators}
spec:
  serviceName: operators
  selector: {matchLabels: {app: operators}}
  template:
    metadata: {labels: {app: operators}}
    spec: {serviceAccountName: operator, containers: [{name: one, image: example.org/image}]}
`

// Renku's credential can write Secrets and patch StatefulSets. Without the admission policies it
// could therefore act as any ServiceAccount of the namespace.
func TestVerifyTheCredentialActsAsNoOtherAccount(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := seeded(t)
	const ns = "fenced-sessions"
	answers := map[string]any{"sessions.namespace": ns, "identity.name": "renku-fenced"}
	open := func(policies bool) *engine.Session {
		answers["identity.policies"] = policies
		return stepstest.Open(t, box, credential(), assets, "fenced", answers)
	}
	object := func(kind string, more map[string]any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
		for key, v := range more {
			o.Object[key] = v
		}
		o.SetNamespace(ns)
		return o
	}
	token := func(account string) *unstructured.Unstructured {
		o := object("Secret", map[string]any{"type": "kubernetes.io/service-account-token"})
		o.SetName("planted-" + account)
		o.SetAnnotations(map[string]string{"kubernetes.io/service-account.name": account})
		return o
	}
	apply := func(as *cluster.Cluster, o *unstructured.Unstructured) error {
		_, err := as.Apply(t.Context(), o, cluster.ApplyOptions{Manager: "renku", Force: true})
		return err
	}
	before := open(false)
	stepstest.Apply(t, before)
	for _, name := range []string{"operator", "other"} {
		box.Run(t, clustertest.Remote, "", "-n", ns, "create", "serviceaccount", name)
	}
	box.Run(
		t, clustertest.Remote, "", "-n", ns, "create", "rolebinding", "operator", "--clusterrole=edit",
		"--serviceaccount="+ns+":operator",
	)
	box.Run(t, clustertest.Remote, operatorsSet, "-n", ns, "create", "-f", "-")
	as := withNewCredential(t, before, ns, "renku-fenced-token")
	if err := apply(as, token("operator")); err != nil {
		t.Fatalf("without the policies this has to work: %v", err)
	}
	box.Run(t, clustertest.Remote, "", "-n", ns, "delete", "secret", "planted-operator")
	for check, found := range map[string]string{
		"token-secrets-denied":     "a token Secret for any ServiceAccount",
		"accounts-least-privilege": ns + "/operator, with ClusterRole/edit in " + ns,
	} {
		if v := verdict(t, before, check, steps.Remote); v.Status != steps.Warn || !strings.Contains(v.Found, found) ||
			v.Fix == "" {
			t.Errorf("%s without the policies: %+v", check, v)
		}
	}

	s := open(true)
	stepstest.Apply(t, s)
	stepstest.Green(t, s)
	for _, check := range []string{"token-secrets-denied", "accounts-least-privilege"} {
		if v := passed(t, s, check, steps.Remote); v.Status != steps.Pass {
			t.Errorf("%s with the policies: %+v", check, v)
		}
	}
	set := object(
		"StatefulSet",
		map[string]any{"spec": map[string]any{
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"more": "1"}}},
		}},
	)
	set.SetAPIVersion("apps/v1")
	set.SetName("operators")
	for what, o := range map[string]*unstructured.Unstructured{
		"a token Secret": token("operator"), "a token Secret of its own": token("renku-fenced"),
		"a StatefulSet of another account": set,
	} {
		// The API server enforces each policy only after its informer has seen it.
		_ = wait.PollUntilContextTimeout(t.Context(), time.Second/10, time.Minute, true, func(context.Context) (bool, error) {
			_, err := as.Apply(t.Context(), o, cluster.ApplyOptions{Manager: "renku", Force: true, DryRun: true})
			return err != nil, nil
		})
		if err := apply(as, o); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			t.Errorf("%s: %v", what, err)
		}
	}
	plain := object("Secret", map[string]any{"type": "Opaque"})
	plain.SetName("plain")
	if err := apply(as, plain); err != nil {
		t.Errorf("a Secret as Renku creates them: %v", err)
	}

	var crd map[string]any
	if err := json.Unmarshal(
		[]byte(box.Run(t, clustertest.Local, "", "get", "crd", "amaltheasessions.amalthea.dev", "-o", "json")), &crd,
	); err != nil {
		t.Fatal(err)
	}
	crd["metadata"] = map[string]any{"name": "amaltheasessions.amalthea.dev"}
	delete(crd, "status")
	definition, err := json.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	box.Run(t, clustertest.Remote, string(definition), "create", "-f", "-")
	defer box.Run(t, clustertest.Remote, "", "delete", "crd", "amaltheasessions.amalthea.dev")
	box.Run(
		t, clustertest.Remote,
		strings.NewReplacer("operators", "sessions", "serviceAccountName: operator, ", "").Replace(operatorsSet), "-n", ns,
		"create", "-f", "-",
	)
	session := func(name string, spec map[string]any) *unstructured.Unstructured {
		o := object("AmaltheaSession", map[string]any{"spec": spec})
		o.SetAPIVersion("amalthea.dev/v1alpha1")
		o.SetName(name)
		spec["hibernated"], spec["session"] = true, map[string]any{"image": "image"}
		return o
	}
	connected := session(
		"connected", map[string]any{"dataSources": []any{map[string]any{"type": "rclone", "mountPath": "data"}}},
	)
	stepstest.Green(t, s)
	if err := apply(as, connected); err != nil {
		t.Fatalf("a session with a data connector has to work: %v", err)
	}
	answers["sessions.data-connectors"] = false
	s = open(true)
	stepstest.Apply(t, s)
	stepstest.Green(t, s)
	for _, check := range []string{"session-account-fixed", "data-connectors-denied"} {
		if v := passed(t, s, check, steps.Remote); v.Status != steps.Pass {
			t.Errorf("%s without data connectors: %+v", check, v)
		}
	}
	volume := map[string]any{
		"name": "v", "ephemeral": map[string]any{"volumeClaimTemplate": map[string]any{"spec": map[string]any{
			"storageClassName": "csi-rclone", "accessModes": []any{"ReadWriteOnce"},
			"resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
		}}},
	}
	set.SetName("sessions")
	set.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"volumes": []any{volume}}}}
	for what, o := range map[string]*unstructured.Unstructured{
		"a data connector":                     session("later", connected.Object["spec"].(map[string]any)),
		"a StatefulSet with a driver's volume": set,
		"a session with a driver's volume":     session("volume", map[string]any{"extraVolumes": []any{volume}}),
	} {
		err := apply(as, o)
		for end := time.Now().Add(30 * time.Second); err == nil && time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
			err = apply(as, o) // the API server learns of a policy by a watch
		}
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			t.Errorf("%s without data connectors: %v", what, err)
		}
	}
	if err := apply(
		as,
		session("plain", map[string]any{"extraVolumes": []any{map[string]any{"name": "v", "emptyDir": map[string]any{}}}}),
	); err != nil {
		t.Errorf("a session without data connectors: %v", err)
	}
	box.Run(
		t, clustertest.Remote, "", "-n", ns, "delete", "amaltheasessions/connected", "amaltheasessions/plain",
		"statefulset/sessions",
	)
	box.Run(
		t, clustertest.Remote, "", "-n", ns, "delete", "secret/plain", "statefulset/operators", "rolebinding/operator",
		"serviceaccount/operator", "serviceaccount/other",
	)
	stepstest.Undo(t, s)
	if left := box.Run(
		t, clustertest.Remote, "", "get", "validatingadmissionpolicies,validatingadmissionpolicybindings", "-o", "name",
	); strings.Contains(left, ns) {
		t.Errorf("left by undo: %s", left)
	}
}
