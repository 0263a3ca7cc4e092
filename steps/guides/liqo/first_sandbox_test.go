package liqo_test

import (
	"testing"

	"carrick/steps/guides/liqo"
	"carrick/steps/stepstest"
)

// opensOn maps each fault with which the demo can start to the check on which the troubles view must open.
var opensOn = map[string]stepstest.First{
	"leftover-tenant":              {Why: "the name is another one than this link's"},
	"load-balancer-pending":        {Why: "no gateway asks for an address yet"},
	"networking-off":               {Why: "Liqo without its module needs no tunnel"},
	"no-external-cidr":             {Check: "liqo-ready"},
	"no-template":                  {Check: "gateway-template"},
	"node-port-taken":              {Why: "the port is answered first"},
	"old-kernel":                   {Check: "kernel"},
	"old-liqo":                     {Check: "liqo-version"},
	"page":                         {Check: "configuration"},
	"remote-controlplane-role-old": {Check: "controlplane-role"},
	"replicator-down":              {Check: "liqo-ready"},
	"same-id":                      {Check: "cluster-id"},
	"version-skew":                 {Check: "liqo-version"},
	"webhook-cert-expiring":        {Check: "webhooks"},
}

func TestVerifyTroublesOpenOnTheCause(t *testing.T) {
	stepstest.FirstTroubles(t, liqo.Guide(), assets, opensOn)
}
