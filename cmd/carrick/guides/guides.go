// Package guides lists all guides of carrick.
package guides

import (
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/guides/argocd"
	"carrick/steps/guides/interlink"
	"carrick/steps/guides/liqo"
	"carrick/steps/guides/ondemand"
	"carrick/steps/guides/renku"
	"carrick/steps/guides/vsphere"
)

// All returns all guides in the order of the start screen. To add a guide, create a directory below steps/guides and
// one below assets, and add a line here.
func All() []*steps.Guide {
	all := []*steps.Guide{
		renku.Guide(),
		liqo.Guide(),
		ondemand.Guide(),
		interlink.Guide(),
		vsphere.Guide(),
		argocd.Guide(),
	}
	for _, g := range all {
		action.WithDrift(g)
	}
	return all
}
