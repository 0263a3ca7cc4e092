package stepstest

import (
	"fmt"

	"carrick/steps"
)

// EveryKind returns a guide with one question of each kind. If a kind allows several answers, the guide also has a
// question with several answers.
func EveryKind() []*steps.Guide {
	kinds := []steps.AnswerKind{
		steps.Text, steps.Name, steps.Namespace, steps.HostName, steps.Port, steps.Number, steps.CIDR, steps.Label,
		steps.Quantity, steps.URL, steps.Path, steps.YesNo, steps.Pick, steps.YAML,
	}
	g := &steps.Guide{Name: "kinds", Title: "Kinds", Sides: map[steps.Side]steps.Role{
		steps.Local: {Name: "a", Kind: steps.Cluster}, steps.Remote: {Name: "b", Kind: steps.Cluster},
	}}
	step := steps.Step{Name: "ask"}
	for i, k := range kinds {
		q := steps.Question{
			Key: fmt.Sprintf("q.%d", i), Title: string(k), Help: "h", Kind: k, Opt: i%2 == 0,
			Of: []steps.Choice{{Value: "one"}, {Value: "two"}},
		}
		step.Ask = append(step.Ask, q)
		if k != steps.YAML {
			q.Key, q.Many = q.Key+".many", true
			step.Ask = append(step.Ask, q)
		}
	}
	step.Ask = append(step.Ask, steps.Question{Key: "hidden", Title: "h", Help: "h", Kind: steps.Text, Secret: true})
	g.Steps = []steps.Step{step}
	return []*steps.Guide{g}
}
