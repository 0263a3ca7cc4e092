package renku_test

import (
	"testing"

	"carrick/steps/guides/renku"
	"carrick/steps/stepstest"
)

// opensOn maps each fault of the demo to the check that the troubles view opens on, or to the reason why the
// view shows no check.
var opensOn = map[string]stepstest.First{
	"cpu-quota":              {Check: "other-quotas"},
	"crd-drift":              {Check: "session-crd-equal"},
	"driver-missing-on-node": {Why: "it is a warning, and the namespace does not exist yet"},
	"helm-value-missing":     {Why: "Renku's admin is asked once the Secret is there"},
	"html":                   {Check: "api-answers"},
	"login-by-hand":          {Why: "the sessions' host is answered first"},
	"name-taken":             {Why: "the name is compared once somebody is signed in"},
	"not-admin":              {Why: "nobody is signed in yet"},
	"old-renku":              {Why: "it is a warning, and others come first"},
	"operator-version":       {Check: "session-crd-equal"},
	"page":                   {Check: "session-crd-equal"},
	"page-frames":            {Check: "session-crd-equal"},
	"quota-left-behind":      {Check: "quota-free"},
	"restricted":             {Check: "pod-security"},
	"slow":                   {Why: "it answers in time"},
	"tls-null":               {Why: "carrick copes with it"},
}

func TestVerifyTroublesOpenOnTheCause(t *testing.T) {
	stepstest.FirstTroubles(t, renku.Guide(), assets, opensOn)
}
