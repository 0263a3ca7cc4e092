package vsphere

import "carrick/steps"

func nfs() steps.Step {
	return steps.Step{Name: "nfs", Title: "NFS"}
}
