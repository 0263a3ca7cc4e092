package vsphere

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/steps"
)

// page is the URL of the published guide, which admins can follow without carrick.
const page = "https://github.com/SoeldnerConsult/vSphere-extensions"

// Values of storage.source, the source of shared volumes. Many pods can write to a shared volume.
const (
	native  = "native" // the cluster's own file volumes
	byNFS   = "nfs"    // a provisioner that this guide installs
	byClass = "class"  // an existing StorageClass
)

// Values of mutation.method, except byKyverno: the methods that set the StorageClass of claims.
const (
	byPolicy  = "policy"
	byWebhook = "webhook"
	byNobody  = "none"
)

// Values of the fact branch: the mechanisms that control the admission of pods.
const (
	branchPSP    = "psp"    // the cluster still serves PodSecurityPolicies
	branchLabels = "labels" // namespaces have pod security levels
)

// vSphereCSI is the provisioner of a guest cluster's own StorageClasses
// (kubernetes-sigs/vsphere-csi-driver).
const vSphereCSI = "csi.vsphere.vmware.com"

var profileKind = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "profiles"}

// pspBranch reports whether the guest cluster still serves PodSecurityPolicies. It returns false if
// the fact branch cannot be read. Checks that depend on this fact report the error.
func pspBranch(e steps.Env) bool {
	branch, err := e.Own.Text("branch")
	return err == nil && branch == branchPSP
}

func usesNFS(e steps.Env) bool { return e.Answers.Text("storage.source") == byNFS }

func usesWebhook(e steps.Env) bool { return e.Answers.Text("mutation.method") == byWebhook }

func usesPolicy(e steps.Env) bool { return e.Answers.Text("mutation.method") == byPolicy }

// trialNamespace returns the namespace for this guide's test objects.
func trialNamespace(e steps.Env) string { return e.Answers.Text("storage.namespace") }

// sharedClassName returns the name of the StorageClass for shared volumes.
func sharedClassName(e steps.Env) string { return e.Answers.Text("storage.class") }

// answer returns the instruction to set the answer key to value.
func answer(e steps.Env, key, value string) string {
	return "set " + key + " to " + value + ": carrick " + e.LinkFile()
}
