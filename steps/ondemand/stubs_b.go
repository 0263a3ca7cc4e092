package ondemand

import (
	"context"

	"go.yaml.in/yaml/v3"

	"carrick/steps"
)

// Stand-ins of what other files bring: this file goes when they are there, and
// with it the calls of stubQuestions and stubFacts in trial.go.

// tokenFiles is the web node's half of the step token (token_files.go).
func tokenFiles() []steps.Action { return nil }

// tokenFileChecks are its checks.
func tokenFileChecks() []steps.Check { return nil }

// stubQuestions are asked by other steps of the guide (registry.go, oidc.go,
// hooks.go, clusterfile.go).
func stubQuestions() []steps.Question {
	ask := func(key string, kind steps.AnswerKind) steps.Question {
		return steps.Question{Key: key, Title: key, Help: "Asked elsewhere.", Kind: kind, Opt: true}
	}
	token := ask("oidc.user-token", steps.Text)
	token.Secret = true
	return []steps.Question{
		ask("registry.use", steps.YesNo), ask("registry.secret", steps.Name), ask("hooks.allow-cidr", steps.CIDR),
		ask("clusterfile.all-namespaces", steps.YesNo), ask("clusterfile.mounts", steps.YAML), token,
	}
}

// stubFacts are learnt by other steps (sides.go, clusterfile.go).
func stubFacts() []steps.Fact {
	return []steps.Fact{
		{Name: "mount-types", Title: "what the cluster file mounts", On: steps.Local, Shared: true, Learn: func(_ context.Context, e steps.Env) (any, error) {
			var mounts []struct {
				Type string `yaml:"type"`
			}
			if err := yaml.Unmarshal([]byte(e.Answers.Text("clusterfile.mounts")), &mounts); err != nil {
				return nil, err
			}
			out := []string{}
			for _, m := range mounts {
				out = append(out, m.Type)
			}
			return out, nil
		}},
	}
}
