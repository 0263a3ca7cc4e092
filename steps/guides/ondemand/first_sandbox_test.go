package ondemand_test

import (
	"testing"

	"carrick/steps/guides/ondemand"
	"carrick/steps/stepstest"
)

// opensOn maps each fault of the demo to the check that the troubles view opens on, or to the reason why the
// view shows no check.
var opensOn = map[string]stepstest.First{
	"admin-kubeconfig":      {Check: "root-identity"},
	"auth-typo":             {Check: "auth-type"},
	"by-hand":               {Why: "nothing is wrong"},
	"ca-missing":            {Check: "ca-file"},
	"hook-env-comment":      {Check: "hook-env-lines"},
	"hook-env-crlf":         {Check: "hook-env-lines"},
	"hook-env-readable":     {Check: "hook-env-private"},
	"hook-not-executable":   {Check: "pre-hook-safe"},
	"hooks-env":             {Check: "hook-env"},
	"issuer-down":           {Check: "issuer"},
	"kubectl-missing":       {Check: "kubectl-installed"},
	"namespace-unbound":     {Check: "reaper-bound"},
	"network-shut":          {Check: "allow-cidr"},
	"no-audience":           {Why: "tokens are checked once one is given"},
	"no-endpoint":           {Check: "endpoint"},
	"no-pre-hook":           {Check: "pre-hook-set"},
	"page":                  {Check: "renewal-installed"},
	"pod-security-policies": {Check: "psp-disabled"},
	"prefix-differs":        {Check: "prefixes-match"},
	"prometheus-empty":      {Why: "Prometheus is asked once idle.enabled is answered"},
	"reaper-everywhere":     {Check: "reaper-values"},
	"registry-refuses":      {Why: "the registry is asked once registry.enabled is answered"},
	"renewal-forbidden":     {Check: "renew-role"},
	"role-narrowed":         {Check: "hooks-role"},
	"tilde":                 {Check: "config-file"},
	"token-endpoint":        {Check: "hook-env-oidc"},
	"token-expired":         {Check: "root-token-lasts"},
	"username-prefixed":     {Why: "users' names are checked once a token of one is given"},
}

func TestVerifyTroublesOpenOnTheCause(t *testing.T) {
	stepstest.FirstTroubles(t, ondemand.Guide(), assets, opensOn)
}
