package renku

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

const nginxLabel = "app.kubernetes.io/name=ingress-nginx"

// snippets describes whether ingress-nginx accepts snippet annotations. ingress-nginx rejects them
// by default since 1.9, and rates them as a critical risk since 1.12 (kubernetes/ingress-nginx
// issues 12648, 13156).
type snippets struct {
	allowed bool
	where   string // NAMESPACE/NAME of the ConfigMap
	found   string // the settings in the ConfigMap, as a sentence
	fix     string
}

// nginxSnippets reads the ConfigMaps of all ingress-nginx controllers. It returns an AbsentError if
// there are none.
func nginxSnippets(ctx context.Context, e steps.Env) (snippets, error) {
	maps, err := nginxConfig(ctx, e)
	if err != nil {
		return snippets{}, err
	}
	if len(maps) == 0 {
		return snippets{}, steps.Absent(
			"no ConfigMap of ingress-nginx exists (name ingress-nginx-controller or label %s)", nginxLabel,
		)
	}
	last := snippets{}
	for _, m := range maps { // check all, because the controller that serves the class is unknown
		minor, err := nginxMinor(ctx, e, m.Namespace)
		if err != nil {
			return snippets{}, err
		}
		if last = judgeSnippets(e, m, minor); !last.allowed {
			return last, nil
		}
	}
	return last, nil
}

func nginxConfig(ctx context.Context, e steps.Env) ([]*corev1.ConfigMap, error) {
	for _, by := range []cluster.Selector{{Fields: "metadata.name=ingress-nginx-controller"}, {Labels: nginxLabel}} {
		maps, err := check.List[corev1.ConfigMap](ctx, e.Cluster, check.ConfigMaps, "", by)
		if err != nil || len(maps) > 0 {
			return maps, err
		}
	}
	return nil, nil
}

// riskFrom is the first minor version of ingress-nginx 1.x that requires annotations-risk-level
// Critical for snippets.
const riskFrom = 12

func judgeSnippets(e steps.Env, m *corev1.ConfigMap, minor int) snippets {
	s := snippets{where: m.Namespace + "/" + m.Name}
	allow, risk := m.Data["allow-snippet-annotations"], m.Data["annotations-risk-level"]
	s.found = fmt.Sprintf(
		"ConfigMap %s has allow-snippet-annotations %s and annotations-risk-level %s", s.where, orUnset(allow), orUnset(risk),
	)
	old := minor >= 0 && minor < riskFrom && risk == ""
	s.allowed = allow == "true" && (risk == "Critical" || old)
	s.fix = fmt.Sprintf(
		"%s -n %s patch configmap %s --type merge -p "+
			"'{\"data\":{\"allow-snippet-annotations\":\"true\",\"annotations-risk-level\":\"Critical\"}}'    # everyone who "+
			"can create an Ingress can then configure nginx. To avoid this, set the header for all sites with add-headers in "+
			"the ConfigMap",
		e.Kubectl(), m.Namespace, m.Name,
	)
	return s
}

func orUnset(v string) string {
	if v == "" {
		return "(not set)"
	}
	return strconv.Quote(v)
}

var nginxTag = regexp.MustCompile(`[:@-]v1\.(\d+)\.\d+`)

// nginxMinor returns the highest minor version of the ingress-nginx 1.x images in the namespace. It
// returns -1 if no image tag contains a version.
func nginxMinor(ctx context.Context, e steps.Env, namespace string) (int, error) {
	var images []string
	add := func(pod corev1.PodSpec) {
		for _, c := range pod.Containers {
			images = append(images, c.Image)
		}
	}
	deployments, err := check.List[appsv1.Deployment](
		ctx, e.Cluster, check.Deployments, namespace, cluster.Selector{Labels: nginxLabel},
	)
	if err != nil {
		return -1, err
	}
	for _, d := range deployments {
		add(d.Spec.Template.Spec)
	}
	sets, err := check.List[appsv1.DaemonSet](
		ctx, e.Cluster, check.DaemonSets, namespace, cluster.Selector{Labels: nginxLabel},
	)
	if err != nil {
		return -1, err
	}
	for _, d := range sets {
		add(d.Spec.Template.Spec)
	}
	newest := -1
	for _, image := range images {
		if m := nginxTag.FindStringSubmatch(image); m != nil {
			minor, _ := strconv.Atoi(m[1]) // the pattern matches only digits
			newest = max(newest, minor)
		}
	}
	return newest, nil
}
