package liqo

import (
	"context"

	"carrick/steps"
)

// todo is a check that is not written yet.
func todo(name string, on steps.Side) steps.Check {
	return steps.Check{Name: name, Title: name, Why: name, On: on, Run: func(context.Context, steps.Env) steps.Result { return steps.Passed("not written yet") }}
}

func networkChecks() []steps.Check {
	return []steps.Check{
		todo("configuration-ready", steps.Both),
	}
}

func keyChecks() []steps.Check {
	return []steps.Check{
		todo("keys", steps.Both),
		todo("peer-key", steps.Both),
	}
}

func tunnelChecks() []steps.Check {
	return []steps.Check{
		todo("server-endpoint", steps.Both),
	}
}
