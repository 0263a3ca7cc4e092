package vsphere

import (
	"carrick/cluster"
	"carrick/steps"
)

func storage() steps.Step {
	return steps.Step{Name: "storage", Title: "Storage"}
}

func storageRights(steps.Env) []cluster.Right { return nil }
