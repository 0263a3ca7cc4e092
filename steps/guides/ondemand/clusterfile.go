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
		Why: "The dashboard learns of a cluster from one file. Upstream passes over a key that it does not know without a " +
			"word, and takes a default in its place: so each key is held against the list of all that it knows.",
		Ask: []steps.Question{
			{
				Key: "clusterfile.cluster", Title: "Name of the cluster in users' kubeconfigs", Kind: steps.Text,
				Check: checkUserPrefix, Adopt: adoptClusterKey("job.cluster"),
				Help: "At each start of the dashboard the entry of that name in the user's kubeconfig is overwritten: it must " +
					"be no name that users have for another cluster.",
				Default: func(e steps.Env) (any, string) { return e.Answers.Text("cluster.id"), "the short name" },
			},
			{
				Key: "clusterfile.context", Title: "Context that kubectl is called with", Kind: steps.Text, Opt: true,
				Check: checkUserPrefix, Adopt: adoptClusterKey("job.context"),
				Help:    "With auth type oidc the dashboard makes it; with managed it has to be there.",
				Default: func(e steps.Env) (any, string) { return e.Answers.Text("clusterfile.cluster"), "the cluster's name" },
			},
			{
				Key: "clusterfile.all-namespaces", Title: "Users see the pods of all namespaces", Kind: steps.YesNo,
				Adopt: adoptFlag("job.all_namespaces"),
				Help: "all_namespaces in the cluster file. They need the right to list pods everywhere, which upstream's " +
					"roles don't give.",
				Default: steps.Fixed(false, "upstream's default"),
			},
			{
				Key: "clusterfile.supplemental-groups", Title: "Pods get all groups of their user", Kind: steps.YesNo,
				Adopt: adoptFlag("job.auto_supplemental_groups"),
				Help: "auto_supplemental_groups in the cluster file: the user's groups from 1000 on, for files that are " +
					"shared by a group.",
				Default: steps.Fixed(false, "upstream's default"),
			},
			{
				Key: "clusterfile.mounts", Title: "Mounts of all pods", Kind: steps.YAML, Opt: true, Check: checkMounts,
				Adopt: adoptMounts,
				Help: "A list of mounts of type host (name, host_type, path, destination_path) or nfs (name, host, path, " +
					"destination_path). Mounts of type host need the level privileged, those of type nfs baseline.",
				Default: steps.Fixed("", "pods bring their own"),
			},
		},
		Facts: []steps.Fact{
			{
				Name: "mount-types", Title: "the types of the mounts in the cluster file", On: steps.Local, Shared: true,
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

// learnMountTypes are those of the cluster file, else of the answer.
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

// adoptMounts are the mounts of the cluster file, as they stand there.
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
