package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"carrick/cluster/chart"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
)

func TestValidateKnowsCharts(t *testing.T) {
	role := func(name string) steps.Role { return steps.Role{Name: name, Kind: steps.Cluster} }
	with := func(c action.Chart) error {
		g := guide("charts", role("here"), role("there"), steps.Step{
			Ask:     []steps.Question{{Key: "space", Title: "Namespace", Help: "h", Kind: steps.Namespace}},
			Actions: []steps.Action{{Name: "install", Title: "Install", On: steps.Remote, Doer: c}},
			Checks:  []steps.Check{{Name: "holds", Title: "it holds", Why: "w", On: steps.Remote, NotChecked: "nothing"}},
		})
		return engine.Validate([]*steps.Guide{g}, fstest.MapFS{})
	}
	good := action.Chart{
		Release: "tiny", Namespace: "${answers.space}", Chart: "tiny",
		Source:  func(context.Context, steps.Env) (chart.Source, error) { return "", nil },
		Version: func(context.Context, steps.Env) (string, error) { return "", nil },
	}
	if err := with(good); err != nil {
		t.Error(err)
	}
	lost, bare := good, good
	lost.Namespace, bare.Version = "${answers.place}", nil
	for _, c := range []struct {
		chart action.Chart
		want  string
	}{{lost, "action install: ${answers.place} is not defined on the there"}, {bare, "a Chart requires Release"}} {
		if err := with(c.chart); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("it says %v", err)
		}
	}
}
