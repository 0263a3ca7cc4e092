package vsphere

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/check"
)

const (
	labelsSource = "kubeflow/dashboard: components/profile-controller/controllers/profile_controller.go (labels are " +
		"added where the key is absent, and never overwritten)"
	kubeflowLevels = "kubeflow/manifests: applications/profiles/pss; kubeflow/dashboard: " +
		"components/profile-controller/manifests/kustomize/overlays/kubeflow-pss"
	levelsPage = "https://kubernetes.io/docs/concepts/security/pod-security-standards/"
)

func levelChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "labels-file", Title: "Kubeflow labels profile namespaces with the level", On: steps.Local,
			Needs: []string{"signed-in"}, FixedBy: "profile-labels",
			Why: "The profile controller labels profile namespaces from this file. New profiles do not get labels that you " +
				"set manually.",
			References: []string{labelsSource, kubeflowLevels}, Run: labelsFileSays,
		},
		{
			Name: "profile-levels", Title: "Profile namespaces have the chosen level and admit notebooks", On: steps.Local,
			When: labelsBranch, Needs: []string{"signed-in"}, FixedBy: "profile-labels", Timeout: 3 * time.Minute,
			Why: "Without a level, Tanzu guests from 1.26 on enforce restricted and reject every notebook. The " +
				"controller never changes an existing level.",
			References: []string{levelsSource, labelsSource}, Run: profileLevels,
		},
		{
			Name: "level-warnings", Title: "No running pod of a profile violates the level", On: steps.Local,
			When: labelsBranch, Needs: []string{"signed-in"},
			Why:        "A level does not stop running pods, but rejects them when they are recreated.",
			References: []string{"https://kubernetes.io/docs/tasks/configure-pod-container/enforce-standards-namespace-labels/"},
			Run:        levelWarnings,
		},
		{
			Name: "istio-cni", Title: "The level allows Istio's sidecars", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "Without istio-cni, each pod gets an init container that runs as root with NET_ADMIN and NET_RAW, " +
				"which baseline and restricted reject.",
			References: []string{"kubeflow/manifests: common/istio/README.md", levelsPage}, Run: istioCNIThere,
		},
		{
			Name: "pods-refused", Title: "No workload of a profile has rejected pods", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "A notebook with rejected pods shows only a spinner. Only an event of its StatefulSet contains " +
				"the reason.",
			References: []string{page, levelsPage}, Run: podsRefused,
		},
	}
}

func labelsFileSays(ctx context.Context, e steps.Env) steps.Result {
	f, err := labelsFile(ctx, e)
	if steps.IsAbsent(err) {
		return steps.Failed(
			err.Error(),
			"install Kubeflow's profile controller, or label each namespace manually: "+e.Kubectl()+" label namespace NAME "+
				check.EnforceLabel+"="+level(e),
		)
	}
	if err != nil {
		return steps.Errored(err)
	}
	has := clean.Text(f.labels[check.EnforceLabel])
	switch {
	case f.broken != nil:
		return steps.Failed(
			fmt.Sprintf(
				"%s of ConfigMap %s cannot be parsed by carrick or the profile controller: %s", labelsKey, f,
				clean.Text(f.broken.Error()),
			),
			editLabels(e, f.namespace, f.name),
		)
	case has == "":
		return steps.Undone(fmt.Sprintf("%s of ConfigMap %s does not set %s", labelsKey, f, check.EnforceLabel))
	case has != level(e):
		return steps.Failed(
			fmt.Sprintf("%s of ConfigMap %s sets level %s, but security.level is %s", labelsKey, f, has, level(e)), "",
		)
	case len(f.others) > 0:
		return steps.Passed(
			"%s, in ConfigMap %s. ConfigMaps of earlier deployments are ignored: %s", has, f, check.Some(f.others),
		)
	}
	return steps.Passed("%s, in ConfigMap %s", has, f)
}

// notebook returns a pod like those that Kubeflow's notebook controller creates (kubeflow/kubeflow:
// components/notebook-controller). In a dry run, the webhooks of its namespace change the pod as they would change a
// real notebook. The pod requests CPU and memory, because Kubeflow's form does so and a quota can require it. The
// requests are small enough for any quota. Kubeflow's own images do not comply with the restricted pod security level.
// For this level, the pod has the securityContext of an image that was built for it.
func notebook(namespace, level string) (*unstructured.Unstructured, error) {
	group := int64(100)
	pod := corev1.Pod{}
	pod.APIVersion, pod.Kind, pod.Name, pod.Namespace = "v1", "Pod", "carrick-preview-0", namespace
	pod.Labels = map[string]string{"notebook-name": "carrick-preview", "app.kubernetes.io/name": "carrick"}
	little := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("1Mi"),
	}
	pod.Spec = corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{FSGroup: &group},
		Containers: []corev1.Container{
			{
				Name: "carrick-preview", Image: "registry.example.org/notebook",
				Resources: corev1.ResourceRequirements{Requests: little, Limits: little},
				Ports:     []corev1.ContainerPort{{Name: "notebook-port", ContainerPort: 8888, Protocol: corev1.ProtocolTCP}},
			},
		},
	}
	if level == check.Restricted {
		yes, no := true, false
		pod.Spec.SecurityContext.RunAsNonRoot = &yes
		pod.Spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
		pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod)
	if err != nil {
		return nil, err
	}
	delete(raw, "status")
	unstructured.RemoveNestedField(raw, "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: raw}, nil
}

// notebookRefusals tests by dry run whether each namespace accepts a notebook pod. It maps each namespace that rejects
// the pod to the reason.
func notebookRefusals(ctx context.Context, e steps.Env, spaces []*corev1.Namespace) (map[string]string, error) {
	asked := spaces[:min(len(spaces), check.MostTried)]
	why := make([]string, len(asked))
	var looks []func() error
	for i, ns := range asked {
		looks = append(looks, func() error {
			pod, err := notebook(ns.Name, level(e))
			if err != nil {
				return err
			}
			_, err = e.Cluster.Preview(ctx, pod, cluster.PreviewOptions{On: func(ctx context.Context) error {
				_, err := e.Cluster.Get(ctx, check.Namespaces, "", ns.Name)
				return err
			}})
			said, refused := check.Refusal(err)
			if refused {
				why[i], err = said, nil
			}
			return err
		})
	}
	if err := check.Together(looks...); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for i, ns := range asked {
		if why[i] != "" {
			out[ns.Name] = why[i]
		}
	}
	return out, nil
}

func profileLevels(ctx context.Context, e steps.Env) steps.Result {
	spaces, err := profileSpaces(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if len(spaces) == 0 {
		return steps.Skipped("no profile exists yet")
	}
	refused, err := notebookRefusals(ctx, e, spaces)
	if err != nil {
		return steps.Errored(err)
	}
	bounded := parted(refused, check.OverLimit)
	none, narrow, wide, held := sortByLevel(e, spaces, refused)
	switch {
	case len(held) > 0:
		return onItsWay(
			ctx, e,
			steps.Failed(
				fmt.Sprintf(
					"%d of %d profile namespaces have no pod security level, and the cluster's default rejects notebooks in "+
						"them: %s (%s)", len(held),
					len(spaces), check.Some(held), refused[held[0]],
				),
				"",
			),
		)
	case len(narrow) > 0:
		return steps.Failed(
			fmt.Sprintf("the pod security level should be %s, but is stricter in %s", level(e), check.Some(narrow)),
			relabelAll(e, narrow),
		).WithoutAction()
	case len(none) > 0:
		return onItsWay(
			ctx, e,
			steps.Warned(
				fmt.Sprintf(
					"%d of %d profile namespaces have no pod security level: %s. The cluster's default rejects nothing now, but can "+
						"change when the guest is upgraded",
					len(none), len(spaces), check.Some(none),
				),
				"",
			).Symptom(),
		)
	case len(refused) > 0:
		return refusedAnyway(e, refused)
	case len(wide) > 0:
		return steps.Warned(
			fmt.Sprintf("the pod security level should be %s, but is less strict in %s", level(e), check.Some(wide)),
			relabelAll(e, wide),
		).WithoutAction()
	case len(bounded) > 0:
		names := slices.Sorted(maps.Keys(bounded))
		return steps.Warned(
			fmt.Sprintf(
				"level %s is set in all %d profile namespaces, but not all namespaces could be tested: quotas or limits in %s "+
					"reject even a minimal notebook pod (%s)",
				level(e), len(spaces), check.Some(names), bounded[names[0]],
			),
			fmt.Sprintf("%s -n %s get resourcequotas,limitranges    # is the quota used up?", e.Kubectl(), names[0]),
		)
	}
	if level(e) == check.Restricted {
		return steps.Passed(
			"level %s is set in all %d profile namespaces and admits notebook pods with a matching securityContext. "+
				"Kubeflow's own notebook pods do not have such a securityContext", level(e),
			len(spaces),
		)
	}
	return steps.Passed("level %s is set in all %d profile namespaces and admits notebook pods", level(e), len(spaces))
}

// sortByLevel groups namespaces by their pod security level. none and held list the namespaces without a level. In the
// namespaces in held, the cluster's default level also rejects a notebook. narrow lists the namespaces whose level is
// stricter than the configured level, and wide lists those whose level is less strict. The entries in narrow and wide
// have the form NAME (LEVEL).
func sortByLevel(
	e steps.Env, spaces []*corev1.Namespace, refused map[string]string,
) (none, narrow, wide, held []string) {
	for _, ns := range spaces {
		has := ns.Labels[check.EnforceLabel]
		switch at, want := check.Narrowness(has), check.Narrowness(level(e)); {
		case has == "" && refused[ns.Name] != "":
			held = append(held, ns.Name)
		case has == "":
			none = append(none, ns.Name)
		case at > want:
			narrow = append(narrow, ns.Name+" ("+clean.Text(has)+")")
		case at < want:
			wide = append(wide, ns.Name+" ("+clean.Text(has)+")")
		}
	}
	return none, narrow, wide, held
}

// relabelAll returns the commands that set the configured pod security level in namespaces from
// sortByLevel.
func relabelAll(e steps.Env, names []string) string {
	var lines []string
	for _, of := range names {
		name, _, _ := strings.Cut(of, " ")
		lines = append(lines, relabel(e, name))
	}
	lines[0] += "    # the profile controller never changes an existing level"
	return strings.Join(lines, "\n")
}

// parted removes entries from the map all if their reasons satisfy the predicate is. It returns the removed entries.
func parted(all map[string]string, is func(string) bool) map[string]string {
	out := map[string]string{}
	for name, why := range all {
		if is(why) {
			out[name] = why
			delete(all, name)
		}
	}
	return out
}

// relabel returns the command that sets the configured pod security level of a namespace.
func relabel(e steps.Env, namespace string) string {
	return fmt.Sprintf("%s label --overwrite namespace %s %s=%s", e.Kubectl(), namespace, check.EnforceLabel, level(e))
}

// onItsWay returns r, the verdict on namespaces without the expected labels. It returns a waiting verdict instead if
// the profile controller might not have read a changed labels file yet. Nodes refresh ConfigMaps once a minute.
func onItsWay(ctx context.Context, e steps.Env, r steps.Result) steps.Result {
	f, err := labelsFile(ctx, e)
	if err != nil || f.labels[check.EnforceLabel] != level(e) {
		return r
	}
	written, err := tracked.Look(
		ctx, "labels-written/"+e.Cluster.Server()+"/"+f.String()+"/"+steps.HashOf(f.text), time.Minute,
		func(ctx context.Context) (check.Written, error) {
			return check.KeyWritten(ctx, e.Cluster, f.namespace, f.name, labelsKey)
		},
	)
	if err != nil {
		return r
	}
	controller, err := theController(ctx, e)
	if err != nil {
		return r
	}
	return controller.lacking(written.Changed, fmt.Sprintf("%s. The labels file has set %s since %s",
		r.Found, level(e), written.Changed.UTC().Format(time.DateTime)))
}

// refusedAnyway returns the verdict on namespaces that have the configured pod security level but
// still reject a notebook.
func refusedAnyway(e steps.Env, refused map[string]string) steps.Result {
	var names []string
	for name := range refused {
		names = append(names, name)
	}
	slices.Sort(names)
	fix := e.Kubectl() + " get namespace " + names[0] +
		" --show-labels    # and check the quota and policies of the namespace: the reason names the cause"
	if named := check.RefusedFix(e.Kubectl(), names[0], refused[names[0]]); named != "" {
		fix = named
	}
	if strings.Contains(refused[names[0]], "NET_ADMIN") || strings.Contains(refused[names[0]], "istio-init") {
		fix = answer(e, "security.level", check.Privileged) + ", or install istio-cni"
	} else if level(e) == check.Restricted && strings.Contains(refused[names[0]], "violates PodSecurity") {
		fix = answer(e, "security.level", check.Baseline) + ", which allows Kubeflow's notebook images"
	}
	return steps.Failed(
		fmt.Sprintf(
			"notebook pods are rejected in %s although the pod security level is correct (%s)", check.Some(names),
			refused[names[0]],
		),
		fix,
	).WithoutAction()
}

// levelWarnings tests by dry run which running pods of profile namespaces violate the configured
// pod security level.
func levelWarnings(ctx context.Context, e steps.Env) steps.Result {
	spaces, err := profileSpaces(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if len(spaces) == 0 {
		return steps.Skipped("no profile exists yet")
	}
	found, err := check.Violators(ctx, e.Cluster, spaces, level(e))
	if err != nil {
		return steps.Errored(err)
	}
	if len(found) > 0 {
		return steps.Warned(
			fmt.Sprintf("level %s would reject running pods: %s", level(e), check.Some(found)),
			"give those pods a securityContext, or set security.level to a less strict level: carrick "+e.LinkFile(),
		)
	}
	return steps.Passed(
		"level %s would reject no running pod in %d namespaces", level(e), min(len(spaces), check.MostTried),
	)
}
