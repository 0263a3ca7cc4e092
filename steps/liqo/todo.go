package liqo

import (
	"context"

	"carrick/steps"
)

// todo is a check that is not written yet.
func todo(name string, on steps.Side) steps.Check {
	return steps.Check{Name: name, Title: name, Why: name, On: on, Run: func(context.Context, steps.Env) steps.Result { return steps.Passed("not written yet") }}
}

func liqoChecks() []steps.Check {
	return []steps.Check{
		todo("cluster-id", steps.Both),
		todo("networks-known", steps.Both),
	}
}

func namespaceChecks() []steps.Check {
	return []steps.Check{
		todo("tenant-namespace", steps.Both),
	}
}

func credentialChecks() []steps.Check {
	return []steps.Check{
		todo("request-sound", steps.Remote),
		todo("controlplane-role", steps.Remote),
		todo("signs-certificates", steps.Remote),
		todo("kubeconfig-whole", steps.Local),
		todo("credential-rights", steps.Local),
	}
}

func authenticationChecks() []steps.Check {
	return []steps.Check{
		todo("tenant", steps.Remote),
		todo("control-plane-accepted", steps.Local),
	}
}

func resourceChecks() []steps.Check {
	return []steps.Check{
		todo("virtual-node", steps.Local),
	}
}

func offloadingChecks() []steps.Check {
	return []steps.Check{
		todo("offloading-ready", steps.Local),
	}
}
