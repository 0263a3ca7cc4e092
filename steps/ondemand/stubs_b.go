package ondemand

import "carrick/steps"

// Stand-ins of what other files bring: this file goes when they are there.

// stubQuestions are asked by other steps of the guide (registry.go, oidc.go,
// hooks.go, clusterfile.go).
func stubQuestions() []steps.Question {
	ask := func(key string, kind steps.AnswerKind) steps.Question {
		return steps.Question{Key: key, Title: key, Help: "Asked elsewhere.", Kind: kind, Opt: true}
	}
	token := ask("oidc.user-token", steps.Text)
	token.Secret = true
	return []steps.Question{
		ask("hooks.allow-cidr", steps.CIDR),
		ask("clusterfile.supplemental-groups", steps.YesNo), ask("clusterfile.mounts", steps.YAML), token,
	}
}
