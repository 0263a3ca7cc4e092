// Package guides is the list of all guides.
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

// All returns all guides, in the order of the first screen. A new guide is a folder under steps, one under assets, and
// a line here.
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
