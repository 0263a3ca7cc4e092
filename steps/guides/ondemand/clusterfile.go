package ondemand

import (
	"context"

	"go.yaml.in/yaml/v3"

	"carrick/steps"
	"carrick/steps/action"
)

func clusterFile() steps.Step {
	return steps.Step{
		Name: "clusterfile", Title: "Cluster file",
		Map: steps.MapRow{Local: "cluster file", Arrow: steps.Remote},
		Why: "The dashboard reads the settings of each cluster from one file. Upstream silently ignores unknown keys and " +
			"uses the defaults instead, so carrick checks every key.",
		Ask: []steps.Question{
			{
				Key: "clusterfile.cluster", Title: "Cluster name in users' kubeconfigs", Kind: steps.Text,
				Check: checkUserPrefix, Adopt: adoptClusterKey("job.cluster"),
				Help: "Enter a name that users do not use for another cluster, such as hpc-k8s. At each start, the dashboard " +
					"overwrites the entry of this name in the user's kubeconfig.",
				Default: func(e steps.Env) (any, string) { return e.Answers.Text("cluster.id"), "from cluster.id" },
			},
			{
				Key: "clusterfile.context", Title: "kubectl context", Kind: steps.Text, Opt: true,
				Check: checkUserPrefix, Adopt: adoptClusterKey("job.context"),
				Help: "The context that the dashboard passes to kubectl. With auth type oidc, the dashboard creates this " +
					"context. With managed, the context must already exist.",
				Default: func(e steps.Env) (any, string) {
					return e.Answers.Text("clusterfile.cluster"), "the cluster's name"
				},
			},
			{
				Key: "clusterfile.all-namespaces", Title: "Listing of pods in all namespaces", Kind: steps.YesNo,
				Adopt: adoptFlag("job.all_namespaces"),
				Help: "Sets all_namespaces in the cluster file. Users then need permission to list pods in all namespaces, " +
					"which upstream's roles do not grant.",
				Default: steps.Fixed(false, "upstream's default"),
			},
			{
				Key: "clusterfile.supplemental-groups", Title: "Supplemental groups in pods", Kind: steps.YesNo,
				Adopt: adoptFlag("job.auto_supplemental_groups"),
				Help: "Sets auto_supplemental_groups in the cluster file. Pods then get all of the user's groups with a GID " +
					"of 1000 or higher, which give access to files shared by a group.",
				Default: steps.Fixed(false, "upstream's default"),
			},
			{
				Key: "clusterfile.mounts", Title: "Mounts in all pods", Kind: steps.YAML, Opt: true, Check: checkMounts,
				Adopt: adoptMounts,
				Help: "A YAML list of mounts of type host (name, host_type, path, destination_path) or nfs (name, host, path, " +
					"destination_path). Type host requires the Pod Security level privileged, type nfs requires baseline.",
				Default: steps.Fixed("", "the default, because apps define their own mounts"),
			},
		},
		Facts: []steps.Fact{
			{
				Name: "mount-types", Title: "the mount types in the cluster file", On: steps.Local, Shared: true,
				Learn: learnMountTypes,
			},
		},
		Actions: []steps.Action{{
			Name: "cluster-file", Title: "Write the cluster file", On: steps.Local,
			Doer: action.File{PathOf: clusterPath, Mode: 0o644, Content: clusterFileText},
		}},
		Checks: clusterFileChecks(),
	}
}

// learnMountTypes returns the mount types in the cluster file. If the file does not exist, it returns the mount types
// in the answer clusterfile.mounts.
func learnMountTypes(ctx context.Context, e steps.Env) (any, error) {
	d, err := openClusterFile(ctx, e)
	if err == nil && d.v2 != nil {
		return append([]string{}, d.mountTypes()...), nil
	}
	if _, absent := err.(*steps.AbsentError); err != nil && !absent {
		return nil, err
	}
	return mountTypesOf(e.Answers.Text("clusterfile.mounts"))
}

func mountTypesOf(text string) ([]string, error) {
	list, err := mountList(text)
	out := []string{}
	for _, m := range list {
		if m, ok := m.(map[string]any); ok {
			if kind, ok := m["type"].(string); ok {
				out = append(out, kind)
			}
		}
	}
	return out, err
}

func adoptMounts(ctx context.Context, e steps.Env) (any, string, error) {
	d, err := openClusterFile(ctx, e)
	if err != nil {
		return nil, "", err
	}
	n := d.at("job.mounts")
	if n == nil || len(n.Content) == 0 {
		return nil, "", nil
	}
	b, err := yaml.Marshal(n)
	if err != nil {
		return nil, "", err
	}
	return string(b), "job.mounts in " + d.path, nil
}
