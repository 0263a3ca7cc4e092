package chart_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/chart"
	"carrick/cluster/clustertest"
	"carrick/cluster/kubeconfig"
)

const crd = "tinywidgets.tiny.example.org"

// wanted returns a request for a release of the small chart.
func wanted(ns string, values map[string]any) chart.Request {
	return chart.Request{
		Name: "tiny", Namespace: ns, Source: "testdata/tiny", Chart: "tiny", Version: "0.1.0", Values: values,
		Labels: map[string]string{"example.org/mark": "m"}, Annotations: map[string]string{"example.org/by": "test"},
		Manager: "carrick.test",
		Timeout: time.Minute,
	}
}

// stage returns a sandbox and a cluster with a namespace for a release.
func stage(t *testing.T, ns string) (*clustertest.Sandbox, *cluster.Cluster) {
	t.Helper()
	box := clustertest.Start(t)
	namespace(t, box, ns)
	box.Cleanup(t, clustertest.Remote, "delete", "crd", crd)
	return box, box.Open(t, clustertest.Remote, cluster.Options{})
}

func TestInstallTwiceUpgradeUninstall(t *testing.T) {
	t.Parallel()
	const ns = "chart-install"
	box, c := stage(t, ns)
	req := wanted(
		ns,
		map[string]any{"message": "one", "hook": map[string]any{"enabled": true}, "extra": map[string]any{"enabled": true}},
	)
	var said []string
	if err := chart.Install(t.Context(), c, req, func(s string) { said = append(said, s) }); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(said, "\n"), "pre-install hook ConfigMap tiny-hook") {
		t.Errorf("progress was %q", said)
	}
	get := func(args ...string) string {
		t.Helper()
		return box.Run(t, clustertest.Remote, "", append([]string{"-n", ns, "get", "--ignore-not-found"}, args...)...)
	}
	// The mark stands on everything, and so does what Helm looks for.
	for _, what := range []string{
		"configmap/tiny", "configmap/tiny-hook", "configmap/tiny-extra", "secret/tiny", "deployment/tiny", "crd/" + crd,
		"secret/sh.helm.release.v1.tiny.v1",
	} {
		if got := get(
			what, "-o", `jsonpath={.metadata.labels.example\.org/mark}{.metadata.annotations.example\.org/by}`,
		); got != "mtest" {
			t.Errorf("%s: mark %q", what, got)
		}
	}
	if got := get(
		"deployment/tiny", "-o",
		`jsonpath={.metadata.labels.app\.kubernetes\.io/managed-by} {.metadata.annotations.meta\.helm\.sh/release-name}`,
	); got != "Helm tiny" {
		t.Errorf("ownership is %q", got)
	}
	r, err := chart.Find(t.Context(), c, ns, "tiny")
	if err != nil || r.Status != chart.Deployed || r.Revision != 1 || r.Version != "0.1.0" ||
		r.Notes != "Installed tiny.\n" {
		t.Fatalf("%+v, %v", r, err)
	}
	if v, _ := r.Value("replicas"); v != float64(1) {
		t.Errorf("replicas is %v", v)
	}

	everything := func() string {
		return get(
			"secret,configmap,deployment", "-o", "jsonpath={range .items[*]}{.metadata.name} {.metadata.resourceVersion} {end}",
		)
	}
	before := everything()
	if err := chart.Install(t.Context(), c, req, nil); err != nil {
		t.Fatal(err)
	}
	if now := everything(); now != before {
		t.Errorf("a second install has changed %s to %s", before, now)
	}
	// What went by hand comes again, and what is random stays.
	secret := get("secret/tiny", "-o", "jsonpath={.data.random}")
	box.Run(t, clustertest.Remote, "", "-n", ns, "delete", "configmap", "tiny")
	if err := chart.Install(t.Context(), c, req, nil); err != nil {
		t.Fatal(err)
	}
	if got := get("configmap/tiny", "-o", "jsonpath={.data.message}"); got != "one" {
		t.Errorf("message is %q", got)
	}
	if secret == "" || get("secret/tiny", "-o", "jsonpath={.data.random}") != secret {
		t.Error("the random value has changed")
	}

	req.Values = map[string]any{"message": "two"}
	if err := chart.Install(t.Context(), c, req, nil); err != nil {
		t.Fatal(err)
	}
	if got := get("configmap/tiny", "-o", "jsonpath={.data.message}{.data.revision}") +
		get("configmap/tiny-extra", "-o", "name"); got != "two2" {
		t.Errorf("after the upgrade: %q", got)
	}
	if all, err := chart.Releases(
		t.Context(), box.Open(t, clustertest.Remote, cluster.Options{Once: true}), ns,
	); err != nil || len(all) != 1 || all[0].Revision != 2 {
		t.Errorf("%+v, %v", all, err)
	}

	left, err := chart.Uninstall(t.Context(), c, req)
	if err != nil || len(left) != 0 {
		t.Errorf("left %q, %v", left, err)
	}
	if got := get("secret,configmap,deployment", "-l", "example.org/mark", "-o", "name"); got != "configmap/tiny-hook\n" {
		t.Errorf("left: %s", got)
	}
	if _, err := chart.Uninstall(t.Context(), c, req); !errors.Is(err, chart.ErrNoRelease) {
		t.Error(err)
	}
}

func TestAFailedInstallSaysWhyAndIsRenewed(t *testing.T) {
	t.Parallel()
	const ns = "chart-fails"
	box, c := stage(t, ns)
	req := wanted(ns, map[string]any{"nodeSelector": map[string]any{"example.org/none": "here"}})
	req.Timeout = 4 * time.Second
	err := chart.Install(t.Context(), c, req, nil)
	if err == nil || !strings.Contains(err.Error(), "Deployment "+ns+"/tiny: 0 of 1 ready") ||
		!strings.Contains(err.Error(), "cannot be scheduled") {
		t.Fatalf("it says %v", err)
	}
	t.Log(err)
	r, err := chart.Find(t.Context(), c, ns, "tiny")
	if err != nil || r.Status != chart.Failed || !strings.Contains(r.Description, "cannot be scheduled") {
		t.Errorf("%+v, %v", r, err)
	}
	// Who is not its maker must not touch it.
	other := req
	other.Labels = map[string]string{"example.org/other": "o"}
	if err := chart.Install(t.Context(), c, other, nil); err == nil ||
		!strings.Contains(err.Error(), "does not belong to this link and has status failed") ||
		!strings.Contains(err.Error(), "delete secret sh.helm.release.v1.tiny.v1") {
		t.Errorf("it says %v", err)
	}
	req.Values, req.Timeout = nil, time.Minute
	if err := chart.Install(t.Context(), c, req, nil); err != nil {
		t.Fatal(err)
	}
	box.Run(
		t, clustertest.Remote, "apiVersion: tiny.example.org/v1\nkind: TinyWidget\nmetadata: {name: w}\n", "-n", ns, "apply",
		"-f", "-",
	)
	if _, err := chart.Uninstall(t.Context(), c, req); err != nil {
		t.Error(err)
	}
	if got := box.Run(
		t, clustertest.Remote, "", "-n", ns, "get", "tinywidget", "-o", "name",
	); !strings.Contains(got, "/w") {
		t.Errorf("the definition went with its objects: %q", got)
	}
}

func TestTheQuotaIsNamed(t *testing.T) {
	t.Parallel()
	const ns = "chart-quota"
	box, c := stage(t, ns)
	box.Run(t, clustertest.Remote, "", "-n", ns, "create", "quota", "none", "--hard=pods=0")
	// Until the quota controller has counted, or the API server has the quota in its cache, pods are admitted.
	box.Run(
		t, clustertest.Remote, "", "-n", ns, "wait", "quota/none", "--for=jsonpath={.status.hard.pods}=0", "--timeout=5m",
	)
	req := wanted(ns, nil)
	req.Timeout = 4 * time.Second
	if err := chart.Install(t.Context(), c, req, nil); err == nil ||
		!strings.Contains(err.Error(), "exceeded quota: none") {
		t.Errorf("it says %v", err)
	} else {
		t.Log(err)
	}
}

func TestInstallRefusesWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	const ns = "chart-foreign"
	box, c := stage(t, ns)
	box.Run(t, clustertest.Remote, "", "-n", ns, "create", "configmap", "tiny")
	err := chart.Install(t.Context(), c, wanted(ns, nil), nil)
	if err == nil ||
		!strings.Contains(err.Error(), "ConfigMap "+ns+"/tiny already exists and belongs to no Helm release") {
		t.Errorf("it says %v", err)
	}
	if _, err := chart.Find(t.Context(), c, ns, "tiny"); !errors.Is(err, chart.ErrNoRelease) {
		t.Errorf("something was written down: %v", err)
	}
	box.Run(t, clustertest.Remote, "", "-n", ns, "delete", "configmap", "tiny")
	nobody, err := cluster.Open(
		kubeconfig.Access{
			Kubeconfig: box.Kubeconfigs[clustertest.Remote], Context: box.Contexts[clustertest.Remote], As: "nobody",
		},
		cluster.Options{},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nobody.Close)
	if err := chart.Install(t.Context(), nobody, wanted(ns, nil), nil); !apierrors.IsForbidden(err) {
		t.Errorf("it says %v", err)
	}
}

// A canceled install leaves no release that is pending indefinitely.
func TestAnInstallThatIsEnded(t *testing.T) {
	t.Parallel()
	const ns = "chart-ended"
	_, c := stage(t, ns)
	ctx, cancel := context.WithCancel(t.Context())
	req := wanted(ns, map[string]any{"nodeSelector": map[string]any{"example.org/none": "here"}})
	err := chart.Install(ctx, c, req, func(s string) {
		if strings.Contains(s, "0 of 1 ready") {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it says %v", err)
	}
	if r, err := chart.Find(t.Context(), c, ns, "tiny"); err != nil || r.Status != chart.Failed {
		t.Errorf("%+v, %v", r, err)
	}
}

// If an installation is killed, its release stays pending. The same request can resume it.
func TestAReleaseThatIsStuck(t *testing.T) {
	t.Parallel()
	const ns = "chart-stuck"
	box, c := stage(t, ns)
	box.Run(t, clustertest.Remote, storedSecret("tiny", chart.PendingInstall, 1, ""), "-n", ns, "apply", "-f", "-")
	err := chart.Install(t.Context(), c, wanted(ns, nil), nil)
	if err == nil ||
		!strings.Contains(
			err.Error(),
			"does not belong to this link and has status pending-install: if no one is working on the release, delete "+
				"its record, "+
				"then apply "+
				"again: kubectl -n "+ns+" delete secret sh.helm.release.v1.tiny.v1",
		) {
		t.Errorf("it says %v", err)
	}
	box.Run(t, clustertest.Remote, "", "-n", ns, "label", "secret", "sh.helm.release.v1.tiny.v1", "example.org/mark=m")
	if err := chart.Install(t.Context(), c, wanted(ns, nil), nil); err != nil {
		t.Fatal(err)
	}
	if r, err := chart.Current(t.Context(), c, ns, "tiny"); err != nil || r.Status != chart.Deployed || r.Revision != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	old := box.Run(
		t, clustertest.Remote, "", "-n", ns, "get", "secret", "sh.helm.release.v1.tiny.v1", "-o",
		"jsonpath={.metadata.labels.status}",
	)
	if old != chart.Superseded {
		t.Errorf("the old revision stands at %s", old)
	}
}
