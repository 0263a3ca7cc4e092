package argocd_test

import (
	"net/http"
	"os"
	"slices"
	"testing"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/argocd"
	"carrick/steps/stepstest"
)

var assets = os.DirFS("../../../assets/argocd")

func TestStates(t *testing.T) {
	stepstest.Play(t, argocd.Guide(), assets, "testdata")
}

func TestVerifyMutants(t *testing.T) {
	stepstest.Mutants(t, argocd.Guide(), assets, "testdata", harmless)
}

// harmless are changes that no check has to see.
var harmless = []stepstest.Harmless{
	{
		Where: `local Secret argocd/cluster-paris: data\.name altered`,
		Why:   "another cluster may have any other name",
	},
	{
		Where: `local Secret argocd/cluster-test: data one more`,
		Why:   "Argo CD reads the keys that it knows and no other",
	},
	{
		Where: `local argocd: a (LimitRange|ResourceQuota of zero|NetworkPolicy that allows everything) added`,
		Why:   "the namespace is Argo CD's own: carrick runs nothing there, and reads whether the controller is ready",
	},
	{
		Where: `remote argocd-manager: a (LimitRange|NetworkPolicy that .* everything) added`,
		Why:   "no pod runs in it",
	},
	{
		Where: `remote team-[ab]: a .* added`,
		Why:   "the namespace belongs to its users, and carrick runs nothing in it",
	},
}

func TestGolden(t *testing.T) {
	stepstest.Golden(t, argocd.Guide(), assets, "testdata", nil)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	box := clustertest.Start(t)
	box.Seed(t, "argocd") // with Argo CD's own kind
	stepstest.Conformance(t, box, argocd.Guide(), assets, "testdata", nil)
}

// By the defaults Argo CD gets the whole cluster, else two namespaces of the scenario.
func TestCycle(t *testing.T) {
	for name, answers := range map[string]map[string]any{
		"whole": nil, "limited": {"access.namespaces": []any{"team-a", "team-b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := clustertest.Start(t)
			box.Seed(t, "argocd")
			stepstest.Cycle(t, box, argocd.Guide(), assets, name, answers)
		})
	}
}

// as sends every request as another user.
func as(user string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return stepstest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("Impersonate-User", user)
			return next.RoundTrip(r)
		})
	}
}

// A token that is created again is also written into Argo CD's cluster Secret, by the same plan.
func TestVerifyADeletedTokenIsReplacedInOneGo(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := clustertest.Start(t)
	box.Seed(t, "argocd")
	s := stepstest.Open(t, box, argocd.Guide(), assets, "token", stepstest.Given(t, box, argocd.Guide(), nil))
	stepstest.Apply(t, s)
	stepstest.Green(t, s)
	box.Run(t, clustertest.Remote, "", "-n", "argocd-manager", "delete", "secret", "argocd-token-long-lived-token")
	s.Forget()
	p, err := s.Plan(t.Context(), engine.Scope{Actions: []string{"account"}, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Actions) != 2 || p.Actions[1].Action != "cluster-secret" || p.Actions[1].Pending == "" {
		t.Fatalf("the plan is %+v", p.Actions)
	}
	box.Run(
		t, clustertest.Local, "", "create", "clusterrole", "reader", "--verb=get,list,watch", "--resource=*.*",
	)
	box.Run(t, clustertest.Local, "", "create", "clusterrolebinding", "reader", "--clusterrole=reader", "--user=reader")
	reader := stepstest.OpenWith(
		t, argocd.Guide(), assets, "token", stepstest.Given(t, box, argocd.Guide(), nil), map[steps.Side]engine.Endpoint{
			steps.Local: {
				Cluster: box.Open(t, clustertest.Local, cluster.Options{Around: as("reader")}), Name: box.Contexts[clustertest.Local],
			},
			steps.Remote: {Cluster: box.Open(t, clustertest.Remote, cluster.Options{}), Name: box.Contexts[clustertest.Remote]},
		},
	)
	q, err := reader.Plan(t.Context(), engine.Scope{Actions: []string{"account"}, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	lack, err := reader.MissingPermissions(t.Context(), q)
	words := lack[steps.Local].Words()
	if err != nil || !slices.Contains(words, "create, patch secrets in argocd") {
		t.Errorf("a reader of Argo CD's cluster lacks %q, %v", words, err)
	}
	if err := s.Apply(t.Context(), p, steps.ApplyOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	stepstest.Green(t, s)
	if p, err = s.Plan(t.Context(), engine.Scope{Actions: []string{"account"}, Follow: true}); err != nil || !p.Empty() {
		t.Errorf("there is something to do still: %v %+v", err, p)
	}
	stepstest.Undo(t, s)
}
