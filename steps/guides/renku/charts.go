package renku

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"carrick/steps"
	"carrick/steps/check"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// rcloneClass is the StorageClass that csi-rclone's chart creates. The operator uses it for the
// volumes of data connectors.
const rcloneClass = "csi-rclone-secret-annotation"

// sameSiteSince and httpsIngressSince are the versions of amalthea-sessions that introduced the
// values useNoneSameSiteSessionCookie and httpsSessionIngress (SwissDataScienceCenter/amalthea
// helm-chart/amalthea-sessions/values.yaml, pull requests 1097 and 1106).
const (
	sameSiteSince     = "0.27.0"
	httpsIngressSince = "0.27.2"
)

// operatorValues returns the Helm values of amalthea-sessions on the remote cluster. With these
// values, the operator watches only its own namespace. The chart includes an old csi-rclone by
// default, which the values disable.
func operatorValues(ctx context.Context, e steps.Env) (map[string]any, error) {
	crd, err := deploysCRD(ctx, e)
	if err != nil {
		return nil, err
	}
	out := map[string]any{
		"clusterScoped":      false,
		"deployCrd":          crd,
		"deploy":             map[string]any{"csiRclone": false},
		"rcloneStorageClass": rcloneClass,
	}
	v, framed := e.Answers.Text("operator.version"), e.Answers.Bool("sessions.framed")
	switch {
	case atLeast(v, sameSiteSince):
		out["useNoneSameSiteSessionCookie"] = framed
	case framed:
		return nil, fmt.Errorf(
			"sessions in a frame (sessions.framed) require amalthea-sessions %s or later, but operator.version is %s",
			sameSiteSince, v,
		)
	}
	if atLeast(v, httpsIngressSince) {
		out["httpsSessionIngress"] = !plainHTTP(e)
	}
	return out, nil
}

// deploysCRD reports whether the release should create the sessions' CRD. Helm rejects an existing
// CRD that does not belong to the release. If the CRD belongs to the release, an upgrade must
// include it. Otherwise Helm deletes the CRD with all sessions.
func deploysCRD(ctx context.Context, e steps.Env) (bool, error) {
	crd, err := e.Cluster.Get(ctx, check.CRDs, "", sessionCRD)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	notes := crd.GetAnnotations()
	if e.Exporting && notes["meta.helm.sh/release-name"] == "" {
		return true, nil
	}
	return notes["meta.helm.sh/release-name"] == e.Answers.Text("operator.release") &&
		notes["meta.helm.sh/release-namespace"] == sessionsNamespace(e), nil
}

// driverValues returns the Helm values of csi-rclone. They make the driver tolerate the taints of
// all session nodes. The chart's kubeletDir sets only the hostPath volumes. The check
// csi-kubelet-dir reports the other paths that must change.
func driverValues(ctx context.Context, e steps.Env) (map[string]any, error) {
	fit, _, err := sessionNodes(ctx, e)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	if list := tolerationsFor(fit); len(list) > 0 {
		out["csiNodepluginRclone"] = map[string]any{"tolerations": list}
	}
	dirs := map[string]string{}
	for _, n := range fit {
		dirs[kubeletDir(n)] = n.Name
	}
	if len(dirs) > 1 {
		return nil, fmt.Errorf(
			"the session nodes have %d different kubelet directories (%s), but the chart supports only one: label nodes with "+
				"the same directory, and set nodes.labels to that label",
			len(dirs), someNodes(fit),
		)
	}
	for dir := range dirs {
		if dir != usualKubeletDir {
			out["kubeletDir"] = dir
		}
	}
	return out, nil
}

func tolerationsFor(nodes []*corev1.Node) []any {
	var keys []string
	for _, n := range nodes {
		for _, t := range n.Spec.Taints {
			if t.Effect != corev1.TaintEffectPreferNoSchedule && !slices.Contains(keys, t.Key) {
				keys = append(keys, t.Key)
			}
		}
	}
	slices.Sort(keys)
	var out []any
	for _, key := range keys {
		out = append(out, map[string]any{"key": key, "operator": "Exists"})
	}
	return out
}

const (
	usualKubeletDir    = "/var/lib/kubelet"
	k0sKubeletDir      = "/var/lib/k0s/kubelet"
	microk8sKubeletDir = "/var/snap/microk8s/common/var/lib/kubelet"
)

func kubeletDir(n *corev1.Node) string {
	if strings.Contains(n.Status.NodeInfo.KubeletVersion, "k0s") {
		return k0sKubeletDir
	}
	if _, ok := n.Labels["microk8s.io/cluster"]; ok {
		return microk8sKubeletDir
	}
	return usualKubeletDir
}

// installsOperator reports whether carrick installs or upgrades the session operator. carrick does
// so if no operator exists or if Helm installed the operator in the session namespace. If another
// tool such as Argo CD installed the operator in that namespace, carrick only includes it in
// exports.
func installsOperator(e steps.Env) bool {
	return helmMayChange(e, "operator-stands", sessionsNamespace(e))
}

func mountsConnectors(e steps.Env) bool { return e.Answers.Bool("sessions.data-connectors") }

func installsDriver(e steps.Env) bool {
	return mountsConnectors(e) && helmMayChange(e, "driver-stands", e.Answers.Text("driver.namespace"))
}

func helmMayChange(e steps.Env, fact, namespace string) bool {
	if e.Own.FieldText(fact, "name") == "" {
		return true
	}
	byHelm := e.Own.FieldText(fact, "release") != ""
	return (byHelm || e.Exporting) && e.Own.FieldText(fact, "namespace") == namespace
}

// makesDriverNamespace reports whether carrick creates the driver's namespace. carrick does so if
// no driver is installed or if carrick installed it. An export also includes the namespace of a
// driver that Helm did not install.
func makesDriverNamespace(e steps.Env) bool {
	if !mountsConnectors(e) {
		return false
	}
	if e.Exporting && e.Own.FieldText("driver-stands", "release") == "" {
		return true
	}
	return e.Own.FieldText("driver-stands", "name") == "" || isOurs(e.Own, "driver-stands")
}
