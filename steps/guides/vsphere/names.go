package vsphere

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/steps"
)

// page is what admins follow without carrick.
const page = "https://github.com/SoeldnerConsult/vSphere-extensions"

// Where the class of volumes that many pods write to comes from.
const (
	native  = "native" // the cluster's own file volumes
	byNFS   = "nfs"    // a provisioner that this guide installs
	byClass = "class"  // a class that is there
)

// Who changes the class of claims.
const (
	byPolicy  = "policy"
	byWebhook = "webhook"
	byNobody  = "none"
)

// How pods are let in.
const (
	branchPSP    = "psp"    // the cluster still serves PodSecurityPolicies
	branchLabels = "labels" // namespaces have levels
)

// vSphereCSI is the provisioner of a guest cluster's own classes (kubernetes-sigs/vsphere-csi-driver).
const vSphereCSI = "csi.vsphere.vmware.com"

var profileKind = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "profiles"}

// pspBranch reports whether the guest cluster still serves PodSecurityPolicies; false if that is
// unknown, which the checks that need it report.
func pspBranch(e steps.Env) bool {
	branch, err := e.Own.Text("branch")
	return err == nil && branch == branchPSP
}

func usesNFS(e steps.Env) bool { return e.Answers.Text("storage.source") == byNFS }

func usesWebhook(e steps.Env) bool { return e.Answers.Text("mutation.method") == byWebhook }

func usesPolicy(e steps.Env) bool { return e.Answers.Text("mutation.method") == byPolicy }

// trialNamespace is the namespace in which this guide tries things.
func trialNamespace(e steps.Env) string { return e.Answers.Text("storage.namespace") }

// sharedClassName is the one for volumes that many pods write to.
func sharedClassName(e steps.Env) string { return e.Answers.Text("storage.class") }

// answer says how an answer is changed.
func answer(e steps.Env, key, value string) string {
	return "answer " + key + " with " + value + ": carrick " + e.LinkFile()
}
