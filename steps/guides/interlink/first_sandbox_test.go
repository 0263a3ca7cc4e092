package interlink_test

import (
	"testing"

	"carrick/steps/guides/interlink"
	"carrick/steps/stepstest"
)

// opensOn maps each fault that the demo can start with to the check that the troubles view shows first.
var opensOn = map[string]stepstest.First{
	"anonymous-closed":    {Why: "it is no harm"},
	"anonymous-open":      {Check: "endpoint-anonymous"},
	"by-hand":             {Why: "nothing is wrong"},
	"certificate-expired": {Check: "certificate-secret"},
	"certificate-renewed": {Check: "endpoint-renewed"},
	"chart-ca":            {Check: "chart-release"},
	"endpoint-closed":     {Check: "endpoint-port"},
	"export-off":          {Check: "plugin-exports"},
	"no-address":          {Why: "nothing asks for an address yet"},
	"no-cert-manager":     {Why: "certificates come from carrick then"},
	"no-mint":             {Check: "kubelet-creates-tokens"},
	"node-pending":        {Why: "it is ready a moment later"},
	"page":                {Check: "chart-values"},
	"projected-off":       {Check: "projected-volumes"},
	"serving-pending":     {Check: "serving-certificate"},
	"upgraded":            {Check: "chart-release"},
	"verbose-token":       {Check: "no-tokens-in-log"},
	"watches-cut":         {Check: "proxy-configuration"},
}

func TestVerifyTroublesOpenOnTheCause(t *testing.T) {
	stepstest.FirstTroubles(t, interlink.Guide(), assets, opensOn)
}
