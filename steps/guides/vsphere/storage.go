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
		Why: "Kale's pipelines share a volume among pods of many nodes. The published guide says that a Tanzu guest has " +
			"none such; since vSphere 7.0U3 it may: so the guest's own file volumes are tried first, and only where they " +
			"don't come about an NFS server is taken, and what changes the class of claims.",
		Ask: []steps.Question{
			{
				Key: "storage.source", Title: "Where shared volumes come from", Kind: steps.Pick, Default: usualSource,
				Help: "native: vSAN File Service, by the guest's own classes; no NFS server, no webhook, at most 100 shares. " +
					"nfs: folders of an NFS server of yours. class: a class that is there and that somebody else looks after, such " +
					"as csi-driver-nfs.",
				Of: []steps.Choice{
					{Value: native, Title: "native: the guest's own file volumes"},
					{Value: byNFS, Title: "nfs: folders of an NFS server, by a provisioner in the guest"},
					{Value: byClass, Title: "class: a class that is there already"},
				},
			},
			{
				Key: "storage.class", Title: "Class of shared volumes", Kind: steps.Name, Default: defaultClassName,
				Help: "The one storage class that claims of many pods shall have. The published guide calls it nfs-client where " +
					"it installs it and nfs where it tests it: keep one name.",
			},
			{
				Key: "storage.try", Title: "Try the guest's own file volumes", Kind: steps.YesNo, Adopt: adoptTry,
				Help: "By a claim that stays as long as this link does. Where they work, nothing of NFS is built; answer no " +
					"to have NFS all the same.",
				Default: steps.Fixed(true, "where they work, nothing else is needed"),
			},
			{
				Key: "storage.namespace", Title: "Namespace in which this guide tries things", Kind: steps.Namespace,
				Adopt:   adoptSpace,
				Help:    "Made and taken away again. One that is there is used as it stands.",
				Default: steps.Fixed("carrick-rwx", "carrick"),
			},
		},
		Facts: []steps.Fact{
			{Name: "native-class", Title: "a class of the guest's own", On: steps.Local, Learn: nativeClass},
			{Name: "nfs-stands", Title: "the NFS provisioner that is there", On: steps.Local, Learn: nfsExists},
			{Name: "shared-class", Title: "a class of which many pods have volumes", On: steps.Local, Learn: sharedClass},
		},
		Actions: []steps.Action{
			{
				Name: "try-namespace", Title: "Make the namespace in which things are tried", On: steps.Local, Reads: storageReads,
				Needs: []string{"guest-cluster"},
				Doer: ownSpace{
					action.Manifest{
						File: "try-namespace.yaml", Values: action.Values{"label-key": labelKey, "label-value": labelValue},
					},
				},
			},
			{
				Name: "native-try", Title: "Ask for a shared volume of the guest's own", On: steps.Local, Reads: storageReads,
				Needs: []string{"guest-cluster"}, When: triesNative,
				Doer: trialClaim{action.Manifest{File: "native-try.yaml", Values: action.Values{"class": triedClass}}, "native"},
			},
		},
		Checks: storageChecks(),
	}
}

// usualSource is what stands already, and before anything does the guest's own.
func usualSource(e steps.Env) (any, string) {
	if stands, err := e.Own.Value("nfs-stands"); err == nil {
		return byNFS, "Deployment " + factField(stands, "namespace") + "/" + factField(stands, "name") +
			" makes volumes of " + factField(stands, "server")
	}
	if name, err := e.Own.Text("shared-class"); err == nil {
		return byClass, "class " + name + " has volumes for many pods"
	}
	return native, "to be tried before anything is built"
}

func defaultClassName(e steps.Env) (any, string) {
	switch e.Answers.Text("storage.source") {
	case byNFS:
		if stands, err := e.Own.Value("nfs-stands"); err == nil && factField(stands, "class") != "" {
			return factField(stands, "class"), "the class of provisioner " + factField(stands, "provisioner")
		}
		return "nfs-client", "the chart"
	case byClass:
		if name, err := e.Own.Text("shared-class"); err == nil {
			return name, "it has volumes for many pods"
		}
		return nil, ""
	}
	if name, err := e.Own.Text("native-class"); err == nil {
		return name, "a class of " + vSphereCSI
	}
	return nil, ""
}

// factField is a field of a fact that is a map.
func factField(fact any, name string) string {
	m, _ := fact.(map[string]any)
	v, _ := m[name].(string)
	return v
}

// triesNative holds also where it can't be read whether there is a class to try with: the plan then says why.
func triesNative(e steps.Env) bool {
	if !e.Answers.Bool("storage.try") {
		return false
	}
	_, err := e.Own.Text("native-class")
	absent := (*steps.AbsentError)(nil)
	return !errors.As(err, &absent) || e.Answers.Text("storage.source") == native
}

// triedClass is the class with which the guest's own volumes are tried.
func triedClass(_ context.Context, e steps.Env) (any, error) {
	if e.Answers.Text("storage.source") == native {
		return sharedClassName(e), nil
	}
	return e.Own.Text("native-class")
}

// triedName is the name of what this link tries.
func triedName(e steps.Env, what string) string { return "carrick-" + e.Link + "-" + what }

// storageReads are what it takes to see which storage is there.
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
