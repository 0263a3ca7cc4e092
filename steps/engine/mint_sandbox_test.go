package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"carrick/cluster/clustertest"
	"carrick/cluster/masked"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
	"carrick/steps/stepstest"
)

const minted = `
apiVersion: v1
kind: Secret
metadata: {name: '${values.name}', namespace: '${answers.space}', labels: {role: gateway}}
type: Opaque
`

// minting returns a link whose only action generates a key pair. made counts how often it does.
func minting(t *testing.T, link, space string, made *int) (*engine.Session, *clustertest.Sandbox) {
	t.Helper()
	box := clustertest.Start(t)
	g, _ := changing("")
	g.Steps[0].Actions[0].Doer = action.Mint{
		File: "a.yaml", Keys: []string{"private", "public"},
		Values: action.Values{"name": func(context.Context, steps.Env) (any, error) { return "pair", nil }},
		Make: func(context.Context, steps.Env) (map[string]masked.Value, error) {
			*made++
			return map[string]masked.Value{"private": masked.New("one"), "public": masked.New("two")}, nil
		},
	}
	return stepstest.Open(
		t, box, g, fstest.MapFS{"a.yaml": {Data: []byte(minted)}}, link, map[string]any{"space": space},
	), box
}

func TestASecretIsMintedOnce(t *testing.T) {
	t.Parallel()
	space(t, "mint")
	made := 0
	s, box := minting(t, "mint", "mint", &made)
	stepstest.Apply(t, s)
	before := box.Run(
		t, clustertest.Remote, "", "-n", "mint", "get", "secret", "pair", "-o", "jsonpath={.data} {.metadata.labels.role}",
	)
	if made != 1 || !strings.Contains(before, "b25l") || !strings.HasSuffix(before, "gateway") {
		t.Fatalf("made %d times: %s", made, before)
	}
	if p, err := s.Plan(t.Context(), engine.Scope{}); err != nil || !p.Empty() {
		t.Errorf("a second apply would change %+v, %v", p.Actions, err)
	}
	box.Run(t, clustertest.Remote, "", "-n", "mint", "label", "secret", "pair", "role-")
	stepstest.Apply(t, s)
	if after := box.Run(
		t, clustertest.Remote, "", "-n", "mint", "get", "secret", "pair", "-o", "jsonpath={.data} {.metadata.labels.role}",
	); after != before || made != 1 {
		t.Errorf("made %d times; the Secret is %s, was %s", made, after, before)
	}
	stepstest.Undo(t, s)
	if left := box.Run(t, clustertest.Remote, "", "-n", "mint", "get", "secrets", "-o", "name"); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

// Existing keys of another user are kept. Only the other fields of the asset are added, and removed again.
func TestKeysOfOthersAreKept(t *testing.T) {
	t.Parallel()
	space(t, "mint-theirs")
	made := 0
	s, box := minting(t, "theirs", "mint-theirs", &made)
	box.Run(
		t, clustertest.Remote, "", "-n", "mint-theirs", "create", "secret", "generic", "pair", "--from-literal=private=x",
		"--from-literal=public=y", "--from-literal=note=z",
	)
	show := func() string {
		return box.Run(
			t, clustertest.Remote, "", "-n", "mint-theirs", "get", "secret", "pair", "-o",
			"jsonpath={.data} {.metadata.labels.role}",
		)
	}
	before := show()
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil ||
		!strings.Contains(fmt.Sprint(p.Actions), "carrick did not create it, so its creator knows the values") {
		t.Errorf("the plan does not say that another user created the keys: %+v, %v", p.Actions, err)
	}
	stepstest.Apply(t, s)
	if after := show(); made != 0 || after != strings.TrimSpace(before)+" gateway" {
		t.Errorf("made %d times; the Secret is %s, was %s", made, after, before)
	}
	stepstest.Undo(t, s)
	if after := show(); after != before {
		t.Errorf("after undo it is %q, was %q", after, before)
	}
}
