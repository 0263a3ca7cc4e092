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
			Name: "labels-file", Title: "Kubeflow gives profiles' namespaces the level", On: steps.Local,
			Needs: []string{"signed-in"}, FixedBy: "profile-labels",
			Why: "the profile controller labels each namespace of a profile by a file, those to come as well: a label " +
				"that somebody sets by hand is forgotten with the next profile",
			References: []string{labelsSource, kubeflowLevels}, Run: labelsFileSays,
		},
		{
			Name: "profile-levels", Title: "each profile's namespace has the level, and lets its pods in", On: steps.Local,
			When: labelsBranch, Needs: []string{"signed-in"}, FixedBy: "profile-labels", Timeout: 3 * time.Minute,
			Why: "a Tanzu guest from 1.26 on holds a namespace without a level to restricted, which refuses every " +
				"notebook; the controller never changes a level that is there",
			References: []string{levelsSource, labelsSource}, Run: profileLevels,
		},
		{
			Name: "level-warnings", Title: "no pod that runs in a profile violates the level", On: steps.Local,
			When: labelsBranch, Needs: []string{"signed-in"},
			Why:        "a level stops no pod that runs already; the same pod does not start again after it",
			References: []string{"https://kubernetes.io/docs/tasks/configure-pod-container/enforce-standards-namespace-labels/"},
			Run:        levelWarnings,
		},
		{
			Name: "istio-cni", Title: "sidecars of Istio need no rights that the level refuses", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "without istio-cni each pod gets an init container that sets up its network with NET_ADMIN and " +
				"NET_RAW as root: baseline and restricted refuse every such pod",
			References: []string{"kubeflow/manifests: common/istio/README.md", levelsPage}, Run: istioCNIThere,
		},
		{
			Name: "pods-refused", Title: "no workload of a profile is refused its pods", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "a notebook whose pods are refused shows nothing but a spinning wheel: the reason stands in an event " +
				"of its StatefulSet alone",
			References: []string{page, levelsPage}, Run: podsRefused,
		},
	}
}

func labelsFileSays(ctx context.Context, e steps.Env) steps.Result {
	f, err := labelsFile(ctx, e)
	if steps.IsAbsent(err) {
		return steps.Failed(
			err.Error(),
			"install Kubeflow's profiles, or give each namespace its level by hand: "+e.Kubectl()+" label namespace NAME "+
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
				"%s of ConfigMap %s can't be read, and the controller can't either: %s", labelsKey, f, clean.Text(f.broken.Error()),
			),
			editLabels(e, f.namespace, f.name),
		)
	case has == "":
		return steps.Undone(fmt.Sprintf("%s of ConfigMap %s says nothing of %s", labelsKey, f, check.EnforceLabel))
	case has != level(e):
		return steps.Failed(
			fmt.Sprintf("%s of ConfigMap %s has the level %s, and security.level is %s", labelsKey, f, has, level(e)), "",
		)
	case len(f.others) > 0:
		return steps.Passed(
			"%s, in ConfigMap %s; %s of earlier deploys are not looked at", has, f, check.Some(f.others),
		)
	}
	return steps.Passed("%s, in ConfigMap %s", has, f)
}

// notebook is a pod as Kubeflow's notebook controller makes them
// (kubeflow/kubeflow: components/notebook-controller): what its namespace adds is
// added to it, too. Its form has them ask for processors and memory, which a quota
// may want; so little is meant to fit into any. Where the level is to be restricted
// it is one of an image that is made for that: Kubeflow's own are refused there.
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

// notebookRefusals asks each namespace whether it would take a notebook's pod, and says
// why not; by name.
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
		return steps.Skipped("there is no profile yet")
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
					"%d of %d profiles' namespaces have no level, and the cluster's own refuses a notebook there: %s (%s)", len(held),
					len(spaces), check.Some(held), refused[held[0]],
				),
				"",
			),
		)
	case len(narrow) > 0:
		return steps.Failed(
			fmt.Sprintf("the level is to be %s; narrower are %s", level(e), check.Some(narrow)), relabelAll(e, narrow),
		).WithoutAction()
	case len(none) > 0:
		return onItsWay(
			ctx, e,
			steps.Warned(
				fmt.Sprintf(
					"%d of %d profiles' namespaces have no level: %s. Nothing is refused there now; an upgrade of the guest may "+
						"change that",
					len(none), len(spaces), check.Some(none),
				),
				"",
			).Symptom(),
		)
	case len(refused) > 0:
		return refusedAnyway(e, refused)
	case len(wide) > 0:
		return steps.Warned(
			fmt.Sprintf("the level is to be %s; wider are %s", level(e), check.Some(wide)), relabelAll(e, wide),
		).WithoutAction()
	case len(bounded) > 0:
		names := slices.Sorted(maps.Keys(bounded))
		return steps.Warned(
			fmt.Sprintf(
				"%s in all %d, and whether it lets a notebook's pod in can't be told everywhere: the bounds of %s refuse one "+
					"that asks for next to nothing (%s)",
				level(e), len(spaces), check.Some(names), bounded[names[0]],
			),
			fmt.Sprintf("%s -n %s get resourcequotas,limitranges    # is the quota used up?", e.Kubectl(), names[0]),
		)
	}
	if level(e) == check.Restricted {
		return steps.Passed(
			"%s in all %d, and a notebook's pod is let in that has a securityContext for it; Kubeflow's own have none", level(e),
			len(spaces),
		)
	}
	return steps.Passed("%s in all %d, and a notebook's pod is let in", level(e), len(spaces))
}

// sortByLevel sorts namespaces by their level: none; narrower or wider than the answered one, with the level after the
// name; and held, which have none while the cluster's own refuses a notebook.
func sortByLevel(e steps.Env, spaces []*corev1.Namespace, refused map[string]string) (none, narrow, wide, held []string) {
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

// relabelAll are the commands that set the level of namespaces of sortByLevel.
func relabelAll(e steps.Env, names []string) string {
	var lines []string
	for _, of := range names {
		name, _, _ := strings.Cut(of, " ")
		lines = append(lines, relabel(e, name))
	}
	lines[0] += "    # the profile controller never changes a level that is there"
	return strings.Join(lines, "\n")
}

// parted takes those out of all for whom it is so, and returns them.
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

// relabel gives a namespace the level.
func relabel(e steps.Env, namespace string) string {
	return fmt.Sprintf("%s label --overwrite namespace %s %s=%s", e.Kubectl(), namespace, check.EnforceLabel, level(e))
}

// onItsWay makes a verdict on namespaces without a level wait for as long as the
// controller may take to read its file anew: nodes look at ConfigMaps once a
// minute.
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
	return controller.lacking(written.Changed, fmt.Sprintf("%s; the labels file says %s since %s",
		r.Found, level(e), written.Changed.UTC().Format(time.DateTime)))
}

// refusedAnyway is for namespaces that have the level, and refuse a notebook still.
func refusedAnyway(e steps.Env, refused map[string]string) steps.Result {
	var names []string
	for name := range refused {
		names = append(names, name)
	}
	slices.Sort(names)
	fix := e.Kubectl() + " get namespace " + names[0] +
		" --show-labels    # and its quota and policies: the reason says which of them refuses"
	if named := check.RefusedFix(e.Kubectl(), names[0], refused[names[0]]); named != "" {
		fix = named
	}
	if strings.Contains(refused[names[0]], "NET_ADMIN") || strings.Contains(refused[names[0]], "istio-init") {
		fix = answer(e, "security.level", check.Privileged) + ", or install istio-cni"
	} else if level(e) == check.Restricted && strings.Contains(refused[names[0]], "violates PodSecurity") {
		fix = answer(e, "security.level", check.Baseline) + ", which Kubeflow's images of notebooks take"
	}
	return steps.Failed(
		fmt.Sprintf(
			"a notebook's pod is refused where the level is as it should be: in %s (%s)", check.Some(names), refused[names[0]],
		),
		fix,
	).WithoutAction()
}

// levelWarnings asks what would be said to the level where it is not yet.
func levelWarnings(ctx context.Context, e steps.Env) steps.Result {
	spaces, err := profileSpaces(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if len(spaces) == 0 {
		return steps.Skipped("there is no profile yet")
	}
	found, err := check.Violators(ctx, e.Cluster, spaces, level(e))
	if err != nil {
		return steps.Errored(err)
	}
	if len(found) > 0 {
		return steps.Warned(
			fmt.Sprintf("%s would refuse what runs: %s", level(e), check.Some(found)),
			"give those pods a securityContext, or answer security.level with a wider level: carrick "+e.LinkFile(),
		)
	}
	return steps.Passed("%s would refuse none of what runs in %d namespaces", level(e), min(len(spaces), check.MostTried))
}
