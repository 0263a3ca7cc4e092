package renku_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/renku"
	"carrick/steps/stepstest"
)

// example contains the answers with which every asset of the guide is rendered. They enable as many
// parts as possible.
var example = map[string]any{
	"reach.job": true, "renku.tracking": true, "renku.reservations": true,
	"session.test": true, "nodes.tolerations": []any{"gpu"},
	"sessions.annotations": []any{"nginx.ingress.kubernetes.io/proxy-body-size=0"}, "sessions.path": "/sessions",
}

func TestGolden(t *testing.T) {
	stepstest.Golden(t, renku.Guide(), assets, "testdata", example)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	box := clustertest.Start(t)
	file := stepstest.Upstream(
		t, "../../..", "amalthea/amalthea.dev_amaltheasessions.yaml", "the test session's asset, and with it all others",
	)
	stepstest.Define(t, box, steps.Remote, file)
	stepstest.Conformance(t, box, renku.Guide(), assets, "testdata", example)
}

var amaltheaSessions = schema.GroupVersionResource{
	Group: "amalthea.dev", Version: "v1alpha1", Resource: "amaltheasessions",
}

const amaltheaSession = `
apiVersion: amalthea.dev/v1alpha1
kind: AmaltheaSession
metadata: {name: one, namespace: amalthea-sessions}
spec: {hibernated: true, session: {image: example.org/image}}
`

// The Role uses the resource name of upstream's CRD. The new credential can list real sessions and
// has every verb that the guide grants.
func TestVerifyConformanceOfTheRoleWithUpstreamsSessions(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	file := stepstest.Upstream(
		t, "../../..", "amalthea/amalthea.dev_amaltheasessions.yaml", "the Role's rule for amaltheasessions.amalthea.dev",
	)
	box := seeded(t)
	stepstest.Define(t, box, steps.Remote, file)
	const ns = "amalthea-sessions"
	s := stepstest.Open(t, box, credential(), assets, "amalthea", map[string]any{"sessions.namespace": ns})
	stepstest.Apply(t, s)
	defer stepstest.Undo(t, s)
	stepstest.Green(t, s)
	box.Run(t, clustertest.Remote, amaltheaSession, "create", "-f", "-")
	defer box.Run(t, clustertest.Remote, "", "-n", ns, "delete", "amaltheasession", "one")

	as := withNewCredential(t, s, ns, "renku-amalthea-token")
	var rights []permission.Rule
	for _, verb := range []string{"create", "delete", "get", "list", "patch", "update", "watch"} {
		rights = append(
			rights,
			permission.Rule{Verb: verb, Group: amaltheaSessions.Group, Resource: amaltheaSessions.Resource, Namespace: ns},
		)
	}
	decisions, err := as.Can(t.Context(), rights...)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range decisions {
		if d.Err != nil || !d.Allowed {
			t.Errorf("%s: allowed %v, %v", d.Rule, d.Allowed, d.Err)
		}
	}
	list, err := as.List(t.Context(), amaltheaSessions, ns, cluster.Selector{})
	if err != nil || len(list) != 1 || list[0].GetName() != "one" {
		t.Errorf("the credential lists %d sessions, %v", len(list), err)
	}
	if _, err := as.List(t.Context(), amaltheaSessions, "default", cluster.Selector{}); err == nil {
		t.Error("the credential lists sessions of another namespace, too")
	}
}

// withNewCredential returns a client of the remote cluster that authenticates only with the token
// in the given Secret.
func withNewCredential(t *testing.T, s *engine.Session, namespace, name string) *cluster.Cluster {
	t.Helper()
	c := s.Endpoint(steps.Remote).Cluster
	secret, err := c.Secret(t.Context(), namespace, name, "token", "ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	k := kubeconfig.Config{Server: c.Server(), CA: []byte(secret.Data["ca.crt"].Reveal()), Token: secret.Data["token"]}
	as, err := c.As([]byte(k.Bytes().Reveal()))
	if err != nil {
		t.Fatal(err)
	}
	return as
}
