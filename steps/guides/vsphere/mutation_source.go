package vsphere

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

// Name prefix and key of the ConfigMap with the defaults of Kubeflow's notebook form
// (kubeflow/notebooks: components/crud-web-apps/jupyter). The name ends in a hash.
const (
	formPrefix = "jupyter-web-app-config"
	formKey    = "spawner_ui_config.yaml"
)

// formVolume is the workspace volume that the form requests for each notebook.
type formVolume struct {
	configMap string
	class     string // StorageClass; "": none is set; "-": "" is set, for an existing volume
	shared    bool   // the volume is ReadWriteMany
}

// notebookForm returns the volume that the form requests for each notebook, or an AbsentError if
// the form is not installed.
func notebookForm(ctx context.Context, e steps.Env) (formVolume, error) {
	maps, err := check.List[corev1.ConfigMap](ctx, e.Cluster, check.ConfigMaps, kubeflowSpace, cluster.Selector{})
	if err != nil {
		return formVolume{}, err
	}
	i := slices.IndexFunc(
		maps, func(m *corev1.ConfigMap) bool { return strings.HasPrefix(m.Name, formPrefix) && m.Data[formKey] != "" },
	)
	if i < 0 {
		return formVolume{}, steps.Absent(
			"no ConfigMap %s-… with key %s exists in namespace %s, so the notebook form is not installed", formPrefix, formKey,
			kubeflowSpace,
		)
	}
	out := formVolume{configMap: maps[i].Namespace + "/" + maps[i].Name}
	var file map[string]any
	if err := yaml.Unmarshal([]byte(maps[i].Data[formKey]), &file); err != nil {
		return out, steps.Absent("%s of ConfigMap %s cannot be parsed: %s", formKey, out.configMap, clean.Text(err.Error()))
	}
	spec, found, _ := unstructured.NestedMap(file, "spawnerFormDefaults", "workspaceVolume", "value", "newPvc", "spec")
	if !found {
		return out, steps.Absent(
			"%s of ConfigMap %s has no spawnerFormDefaults.workspaceVolume.value.newPvc.spec", formKey, out.configMap,
		)
	}
	modes, _, _ := unstructured.NestedStringSlice(spec, "accessModes")
	out.shared = slices.Contains(modes, string(corev1.ReadWriteMany))
	if v, named := spec["storageClassName"]; named && v != nil {
		out.class = fmt.Sprint(v)
		if out.class == "" {
			out.class = "-"
		}
	}
	return out, nil
}

func sourceClass(ctx context.Context, e steps.Env) steps.Result {
	f, err := notebookForm(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	edit := fmt.Sprintf(
		"%s -n %s edit configmap %s    # %s: workspaceVolume.value.newPvc.spec.storageClassName; then rollout restart "+
			"deployment jupyter-web-app-deployment",
		e.Kubectl(), kubeflowSpace, strings.TrimPrefix(f.configMap, kubeflowSpace+"/"), formKey,
	)
	if f.class != "" && f.class != "-" {
		_, err := e.Cluster.Get(ctx, check.StorageClasses, "", f.class)
		if apierrors.IsNotFound(err) {
			return steps.Failed(
				fmt.Sprintf(
					"ConfigMap %s requests StorageClass %s, which does not exist, so every notebook volume stays Pending", f.configMap,
					clean.Text(f.class),
				),
				edit,
			)
		}
		if err != nil {
			return steps.Errored(err)
		}
	}
	from := e.Answers.List("mutation.replaces")
	goesTo := exchanges(e) && (f.class == "" || slices.Contains(from, f.class))
	switch {
	case !f.shared:
		return steps.Passed("ConfigMap %s requests single-node volumes %s", f.configMap, orDefault(f.class))
	case f.class == "-":
		return steps.Passed("ConfigMap %s requests existing ReadWriteMany volumes", f.configMap)
	case f.class == sharedClassName(e), goesTo:
		return steps.Passed(
			"ConfigMap %s requests ReadWriteMany volumes %s, which get StorageClass %s", f.configMap, orDefault(f.class),
			sharedClassName(e),
		)
	case f.class == "" && e.Answers.Text("storage.source") == native:
		return steps.Passed(
			"ConfigMap %s requests ReadWriteMany volumes with the default StorageClass, which supports them", f.configMap,
		)
	}
	return steps.Warned(
		fmt.Sprintf(
			"ConfigMap %s requests ReadWriteMany volumes %s. They keep that StorageClass, but storage.class is %s",
			f.configMap,
			orDefault(f.class), sharedClassName(e),
		),
		edit,
	)
}

func orDefault(class string) string {
	if class == "" {
		return "with the default StorageClass"
	}
	return "with StorageClass " + clean.Text(class)
}
