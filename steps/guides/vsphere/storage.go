package vsphere

import (
	"context"
	"errors"

	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

func storage() steps.Step {
	return steps.Step{
		Name: "storage", Title: "Storage",
		Map: steps.MapRow{Local: "file volumes"},
		Why: "Kale's pipelines share a volume among pods on many nodes. The published guide states that a Tanzu guest " +
			"provides no such volumes. Since vSphere 7.0U3 a guest can, so carrick tests the guest's own file volumes first. " +
			"If the test fails, carrick uses an NFS server and sets the StorageClass of claims.",
		Ask: []steps.Question{
			{
				Key: "storage.source", Title: "Source of shared volumes", Kind: steps.Pick, Default: usualSource,
				Help: "native: vSAN File Service through StorageClasses of the vSphere CSI driver, without an NFS server or " +
					"webhook, at most 100 shares. nfs: directories on your NFS server. class: an existing StorageClass that carrick " +
					"does not manage, such as one of csi-driver-nfs.",
				Of: []steps.Choice{
					{Value: native, Title: "native: the guest's own file volumes"},
					{Value: byNFS, Title: "nfs: directories on an NFS server, through a provisioner in the guest"},
					{Value: byClass, Title: "class: an existing StorageClass"},
				},
			},
			{
				Key: "storage.class", Title: "StorageClass of shared volumes", Kind: steps.Name, Default: defaultClassName,
				Help: "The StorageClass for ReadWriteMany claims, such as nfs-client. The published guide installs nfs-client, " +
					"but its test claim names nfs.",
			},
			{
				Key: "storage.test", Title: "Test of the guest's own file volumes", Kind: steps.YesNo, Adopt: adoptTry,
				Help: "carrick creates a test claim and keeps it as long as this link exists. If the claim is bound, carrick " +
					"does not set up NFS. Select no to use NFS anyway.",
				Default: steps.Fixed(true, "default"),
			},
			{
				Key: "storage.namespace", Title: "Test namespace", Kind: steps.Namespace,
				Adopt: adoptSpace,
				Help: "Namespace of test claims and pods, such as carrick-rwx. An undo deletes the namespace if carrick " +
					"created it. carrick does not change an existing namespace.",
				Default: steps.Fixed("carrick-rwx", "default"),
			},
		},
		Facts: []steps.Fact{
			{Name: "native-class", Title: "a StorageClass of the vSphere CSI driver", On: steps.Local, Learn: nativeClass},
			{Name: "nfs-stands", Title: "the existing NFS provisioner", On: steps.Local, Learn: nfsExists},
			{Name: "shared-class", Title: "an existing StorageClass with shared volumes", On: steps.Local, Learn: sharedClass},
		},
		Actions: []steps.Action{
			{
				Name: "try-namespace", Title: "Create the test namespace", On: steps.Local, Reads: storageReads,
				Needs: []string{"guest-cluster"},
				Doer: ownSpace{
					action.Manifest{
						File: "try-namespace.yaml", Values: action.Values{"label-key": labelKey, "label-value": labelValue},
					},
				},
			},
			{
				Name: "native-try", Title: "Create a test claim for the guest's own file volumes", On: steps.Local,
				Reads: storageReads,
				Needs: []string{"guest-cluster"}, When: triesNative,
				Doer: trialClaim{action.Manifest{File: "native-try.yaml", Values: action.Values{"class": triedClass}}, "native"},
			},
		},
		Checks: storageChecks(),
	}
}

// usualSource returns the default of storage.source: the existing source of shared volumes, or else
// the guest's own volumes.
func usualSource(e steps.Env) (any, string) {
	if stands, err := e.Own.Value("nfs-stands"); err == nil {
		return byNFS, "Deployment " + factField(stands, "namespace") + "/" + factField(stands, "name") +
			" for NFS server " + factField(stands, "server")
	}
	if name, err := e.Own.Text("shared-class"); err == nil {
		return byClass, "StorageClass " + name + " with shared volumes"
	}
	return native, "default"
}

func defaultClassName(e steps.Env) (any, string) {
	switch e.Answers.Text("storage.source") {
	case byNFS:
		if stands, err := e.Own.Value("nfs-stands"); err == nil && factField(stands, "class") != "" {
			return factField(stands, "class"), "the StorageClass of provisioner " + factField(stands, "provisioner")
		}
		return "nfs-client", "the chart"
	case byClass:
		if name, err := e.Own.Text("shared-class"); err == nil {
			return name, "its ReadWriteMany volumes"
		}
		return nil, ""
	}
	if name, err := e.Own.Text("native-class"); err == nil {
		return name, "a StorageClass of " + vSphereCSI
	}
	return nil, ""
}

// factField returns a string field of a fact. It returns "" if the fact is not a map or has no such string.
func factField(fact any, name string) string {
	m, _ := fact.(map[string]any)
	v, _ := m[name].(string)
	return v
}

// triesNative reports whether carrick tests the guest's own volumes. It also returns true if the
// fact native-class cannot be read. The plan then reports the reason.
func triesNative(e steps.Env) bool {
	if !e.Answers.Bool("storage.test") {
		return false
	}
	_, err := e.Own.Text("native-class")
	absent := (*steps.AbsentError)(nil)
	return !errors.As(err, &absent) || e.Answers.Text("storage.source") == native
}

// triedClass returns the StorageClass of the test claim for the guest's own volumes.
func triedClass(_ context.Context, e steps.Env) (any, error) {
	if e.Answers.Text("storage.source") == native {
		return sharedClassName(e), nil
	}
	return e.Own.Text("native-class")
}

// triedName returns the name of a test object of this link.
func triedName(e steps.Env, what string) string { return "carrick-" + e.Link + "-" + what }

// storageReads lists the permissions to read the existing storage.
var storageReads = check.ToFollow("", check.StorageClasses, check.Deployments, check.VolumeClaims)

func storagePermissions(e steps.Env) []permission.Rule {
	out := check.ToApply("", check.Namespaces)
	out = append(out, check.ToFollow("", check.StorageClasses, check.VolumeClaims)...)
	if triesNative(e) {
		out = append(out, check.ToApply(trialNamespace(e), check.VolumeClaims)...)
		out = append(out, check.ToFollow(trialNamespace(e), check.Events)...)
	}
	return out
}
