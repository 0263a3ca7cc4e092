package vsphere

import (
	"carrick/cluster"
	"carrick/steps"
)

func nfs() steps.Step {
	return steps.Step{Name: "nfs", Title: "NFS"}
}

func nfsRights(steps.Env) []cluster.Right { return nil }
