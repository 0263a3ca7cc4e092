package renku

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/chart"
	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/check"
)

// The two charts that the remote cluster requires, their workloads and the session CRD
// (SwissDataScienceCenter/amalthea helm-chart/amalthea-sessions, SwissDataScienceCenter/csi-rclone
// deploy/csi-rclone).
const (
	operatorChart  = "amalthea-sessions"
	driverChart    = "csi-rclone"
	sessionCRD     = "amaltheasessions.amalthea.dev"
	sessionVersion = "v1alpha1"

	operatorLabels = "app.kubernetes.io/name=amalthea-sessions,control-plane=controller-manager"
	driverLabels   = "app.kubernetes.io/name=csi-rclone"
)

// seen contains the versions of one product on one side. It has several sources, because not every
// source is readable on every cluster. The label app.kubernetes.io/version is not a source, because
// the charts never change it.
type seen struct {
	label   string // from the workload's label helm.sh/chart
	image   string // image tag of the workload's container
	release string // chart version in the Helm release
	pinned  string // version of the dependency in Renku's chart, even if the dependency is disabled
	hash    string // hash of the CRD's versions; only for the operator
	unread  string // why some sources could not be read
}

// fact returns the versions in the format that seenOf reads.
func (s seen) fact() map[string]any {
	out := map[string]any{}
	for key, v := range map[string]string{
		"label": s.label, "image": s.image, "release": s.release, "pinned": s.pinned, "crd-hash": s.hash, "unread": s.unread,
	} {
		if v != "" {
			out[key] = v
		}
	}
	return out
}

// seenOnBoth reads a version fact (amalthea or csi-rclone) from both sides concurrently.
func seenOnBoth(e steps.Env, name string) (own, peer seen, ownErr, peerErr error) {
	_ = check.Together(
		func() error { own, ownErr = seenOf(e.Own, name); return nil },
		func() error { peer, peerErr = seenOf(e.Peer, name); return nil },
	)
	return own, peer, ownErr, peerErr
}

// seenOf reads a version fact of one side. The fact comes from the cluster or from a facts file.
func seenOf(f steps.Facts, name string) (seen, error) {
	v, err := f.Value(name)
	if err != nil {
		return seen{}, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return seen{}, fmt.Errorf("fact %q is a %T, not a mapping", name, v)
	}
	at := func(key string) string { s, _ := m[key].(string); return clean.Text(s) }
	return seen{
		label: at("label"), image: at("image"), release: at("release"),
		pinned: at("pinned"), hash: at("crd-hash"), unread: at("unread"),
	}, nil
}

// version returns the version of the running chart. It returns "" if the version is unknown or
// the chart is not installed.
func (s seen) version() string {
	for _, v := range []string{s.label, s.release, s.image} {
		if v != "" {
			return v
		}
	}
	return ""
}

// differs reports whether the sources contain different versions.
func (s seen) differs() bool {
	v := s.version()
	return slices.ContainsFunc([]string{s.label, s.release, s.image}, func(o string) bool { return o != "" && o != v })
}

func (s seen) floating() bool { return s.image == "latest" }

// String returns the versions with their sources, such as "0.30.2 (label, image); CRD 1f2e3d".
func (s seen) String() string {
	var parts []string
	for _, v := range slices.Compact(slices.Sorted(slices.Values([]string{s.label, s.release, s.image}))) {
		if v == "" {
			continue
		}
		var by []string
		for _, w := range []struct{ name, v string }{{"label", s.label}, {"release", s.release}, {"image", s.image}} {
			if w.v == v {
				by = append(by, w.name)
			}
		}
		parts = append(parts, v+" ("+strings.Join(by, ", ")+")")
	}
	if len(parts) == 0 && s.pinned != "" {
		parts = append(parts, "not running, "+s.pinned+" in Renku's chart")
	}
	if s.hash != "" {
		parts = append(parts, "CRD "+s.hash)
	}
	if s.unread != "" {
		parts = append(parts, s.unread)
	}
	return strings.Join(parts, "; ")
}

func versionFacts() []steps.Fact {
	return []steps.Fact{
		{Name: "amalthea", Title: "the versions of the session operator", On: steps.Both, Shared: true, Learn: learnOperator},
		{Name: "csi-rclone", Title: "the versions of csi-rclone", On: steps.Both, Shared: true, Learn: learnDriver},
		{Name: "operator-stands", Title: "the installed session operator", On: steps.Remote, Learn: operatorExists},
		{Name: "driver-stands", Title: "the installed csi-rclone", On: steps.Remote, Learn: driverExists},
	}
}

func learnOperator(ctx context.Context, e steps.Env) (any, error) {
	var s seen
	var d *appsv1.Deployment
	ns := operatedNamespace(e)
	err := check.Together(
		func() (err error) { d, _, err = operators(ctx, e); return err },
		func() (err error) { s.hash, err = crdHash(ctx, e); return err },
		func() error { _, _ = releases(ctx, e, ns); return nil }, // prefetches the releases for readReleases
	)
	if err != nil {
		return nil, err
	}
	if d != nil {
		ns = d.Namespace
		s.label, s.image = chartLabel(d.Labels, operatorChart), imageTag(d.Spec.Template.Spec, "manager")
	}
	s.readReleases(ctx, e, ns, operatorChart)
	if s == (seen{}) {
		return nil, steps.Absent("no session operator watches namespace %s of the %s cluster", ns, e.SideName())
	}
	return s.fact(), nil
}

func learnDriver(ctx context.Context, e steps.Env) (any, error) {
	var s seen
	var d *appsv1.DaemonSet
	ns := rcloneSpace
	err := check.Together(
		func() (err error) { d, err = driver(ctx, e); return err },
		func() error { _, _ = releases(ctx, e, ns); return nil }, // prefetches the releases for readReleases
	)
	if err != nil {
		return nil, err
	}
	if d != nil {
		ns = d.Namespace
		s.label, s.image = chartLabel(d.Labels, driverChart), imageTag(d.Spec.Template.Spec, "rclone")
	}
	s.readReleases(ctx, e, ns, driverChart)
	if s == (seen{}) {
		return nil, steps.Absent("csi-rclone is not installed on the %s cluster", e.SideName())
	}
	return s.fact(), nil
}

// readReleases reads the chart's version from its Helm release. On the local side it also reads the
// version from the dependencies of Renku's chart. If the releases cannot be read, it stores the
// reason in s.unread and returns no error, because other sources remain.
func (s *seen) readReleases(ctx context.Context, e steps.Env, namespace, name string) {
	found, err := releases(ctx, e, namespace)
	for _, r := range found {
		if r.Chart == name {
			s.release = r.Version
		}
	}
	if err == nil && e.Side == steps.Local {
		err = s.readPart(ctx, e, name)
	}
	if err != nil {
		s.unread = "Helm releases cannot be read: " + failure.Explain(err)
	}
}

// readPart reads the version of a chart from the dependencies of Renku's own chart.
func (s *seen) readPart(ctx context.Context, e steps.Env, name string) error {
	r, err := renkuRelease(ctx, e)
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, d := range r.Dependencies {
		if d.Name != name {
			continue
		}
		s.pinned = d.Version
		if s.release == "" && isOn(r, d.Condition) {
			s.release = d.Version
		}
	}
	return nil
}

// isOn reports whether condition enables a dependency, as in Helm. The first path with a boolean
// value decides. Without such a path the dependency is enabled.
func isOn(r *chart.Release, condition string) bool {
	for path := range strings.SplitSeq(condition, ",") {
		v, _ := r.Value(strings.TrimSpace(path))
		if on, ok := v.(bool); ok {
			return on
		}
	}
	return true
}

// chartLabel returns the version in the label helm.sh/chart, for example 0.6.0 for
// "csi-rclone-0.6.0". Label values cannot contain "+", so charts replace it with "_".
func chartLabel(labels map[string]string, name string) string {
	v, ok := strings.CutPrefix(labels["helm.sh/chart"], name+"-")
	if !ok {
		return ""
	}
	return strings.ReplaceAll(v, "_", "+")
}

// imageTag returns the tag of a container's image. It returns "latest" for an image with neither
// a tag nor a digest.
func imageTag(pod corev1.PodSpec, container string) string {
	for _, c := range pod.Containers {
		if c.Name != container {
			continue
		}
		name, _, pinned := strings.Cut(c.Image, "@")
		base := name[strings.LastIndex(name, "/")+1:]
		if _, tag, ok := strings.Cut(base, ":"); ok {
			return tag
		}
		if pinned {
			return ""
		}
		return "latest"
	}
	return ""
}

// crdHash returns the hash of the session CRD, or "" if the CRD does not exist.
func crdHash(ctx context.Context, e steps.Env) (string, error) {
	return tracked.Look(ctx, "session-crd/"+string(e.Side), releasesKept, func(ctx context.Context) (string, error) {
		crd, err := e.Cluster.Get(ctx, check.CRDs, "", sessionCRD)
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		return hashOfVersions(crd)
	})
}

// hashOfVersions returns a hash of the name, schema and subresources of each version in a CRD,
// because a CRD has no version number of its own. The input of the hash is canonical JSON (sorted
// keys, no spaces).
func hashOfVersions(crd *unstructured.Unstructured) (string, error) {
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil || len(versions) == 0 {
		return "", fmt.Errorf("CRD %s has no versions", crd.GetName())
	}
	var kept []any
	for _, v := range versions {
		m, _ := v.(map[string]any)
		one := map[string]any{}
		for _, key := range []string{"name", "schema", "subresources"} {
			if m[key] != nil {
				one[key] = m[key]
			}
		}
		kept = append(kept, one)
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return "", fmt.Errorf("CRD %s: %w", crd.GetName(), err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6]), nil
}
