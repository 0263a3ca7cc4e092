package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func start(t *testing.T) *Repository {
	t.Helper()
	r, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func get(t *testing.T, url string, want int) []byte {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != want {
		t.Fatalf("%s: %s, %v", url, answer.Status, err)
	}
	return data
}

func TestTheIndexListsWhatCanBeFetched(t *testing.T) {
	r := start(t)
	var index struct {
		APIVersion string
		Entries    map[string][]struct {
			Name, Version, Digest string
			URLs                  []string
		}
	}
	if err := json.Unmarshal(get(t, r.URL+"/index.yaml", http.StatusOK), &index); err != nil {
		t.Fatal(err)
	}
	var versions []string
	for name, entries := range index.Entries {
		for _, e := range entries {
			versions = append(versions, name+" "+e.Version)
			archive := get(t, e.URLs[0], http.StatusOK)
			if sum := sha256.Sum256(archive); hex.EncodeToString(sum[:]) != e.Digest {
				t.Errorf("%s %s: not the digest of the index", name, e.Version)
			}
			if files := unpack(t, archive); !slices.Contains(files, name+"/Chart.yaml") ||
				!slices.Contains(files, name+"/values.yaml") {
				t.Errorf("%s %s: %v", name, e.Version, files)
			}
		}
	}
	slices.Sort(versions)
	want := []string{"amalthea-sessions 0.30.2", "amalthea-sessions 0.31.0", "csi-rclone 0.6.0", "renku 2.19.3"}
	if !slices.Equal(versions, want) {
		t.Errorf("versions: %v", versions)
	}
	if index.Entries["amalthea-sessions"][0].Version != "0.31.0" {
		t.Error("the newest version is not the first")
	}
	get(t, r.URL+"/amalthea-sessions-0.1.0.tgz", http.StatusNotFound)
	answer, err := http.Post(r.URL+"/index.yaml", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %s", answer.Status)
	}
}

func unpack(t *testing.T, archive []byte) []string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for files := tar.NewReader(zip); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
}

func render(t *testing.T, r *Repository, name, version string, release Release) map[string]*unstructured.Unstructured {
	t.Helper()
	chart, err := r.Find(name, version)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := chart.Objects(release)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		found[o.GetKind()+" "+o.GetName()] = o
	}
	if len(found) != len(objects) {
		t.Errorf("%s makes an object twice", name)
	}
	return found
}

func TestNamesAndSwitchesAreUpstreams(t *testing.T) {
	r := start(t)
	const generated = "amalthea-sessions-1763000000"
	for _, c := range []struct {
		chart, version, release string
		values                  map[string]any
		has, lacks              []string
	}{
		{
			chart: "amalthea-sessions", version: "0.30.2", release: generated,
			has: []string{
				"Deployment " + generated + "-controller-manager", "CustomResourceDefinition amaltheasessions.amalthea.dev",
				"Role " + generated + "-manager-role", "Role " + generated + "-leader-election-role",
			},
			lacks: []string{"ClusterRole " + generated + "-manager-role", "PodDisruptionBudget user-sessions"},
		},
		{
			chart: "amalthea-sessions", version: "0.31.0", release: "renku",
			values: map[string]any{"deployCrd": false, "clusterScoped": true},
			has: []string{
				"Deployment renku-amalthea-sessions-controller-manager", "ClusterRole renku-amalthea-sessions-manager-role",
				"Role renku-amalthea-sessions-leader-election-role", "PodDisruptionBudget user-sessions",
			},
			lacks: []string{"CustomResourceDefinition amaltheasessions.amalthea.dev"},
		},
		{
			chart: "csi-rclone", version: "0.6.0", release: "csi-rclone",
			has: []string{
				"DaemonSet csi-rclone-nodeplugin", "StatefulSet csi-rclone-controller", "CSIDriver csi-rclone-driver",
				"StorageClass csi-rclone", "StorageClass csi-rclone-secret-annotation",
				"ServiceAccount csi-rclone-nodeplugin", "ClusterRoleBinding csi-rclone-attacher-role",
				"Role csi-rclone-external-provisioner-cfg",
			},
		},
		{
			chart: "csi-rclone", version: "0.6.0", release: "csi-rclone",
			values: map[string]any{
				"driver": map[string]any{"create": false}, "storageClass": map[string]any{"create": false},
				"rbac": map[string]any{"create": false},
			},
			has:   []string{"DaemonSet csi-rclone-nodeplugin", "ServiceAccount csi-rclone-controller"},
			lacks: []string{"CSIDriver csi-rclone-driver", "StorageClass csi-rclone", "ClusterRole csi-rclone-nodeplugin"},
		},
		{
			chart: "renku", version: "2.19.3", release: "renku",
			has: []string{
				"Deployment renku-data-service", "Deployment renku-secrets-storage", "ServiceAccount renku-data-tasks",
				"Secret renku-notebooks", "Deployment renku-amalthea-sessions-controller-manager",
			},
			lacks: []string{"DaemonSet renku-csi-rclone-nodeplugin"},
		},
		{
			chart: "renku", version: "2.19.3", release: "renku",
			values: map[string]any{"global": map[string]any{"csi-rclone": map[string]any{"install": true}}},
			has:    []string{"DaemonSet renku-csi-rclone-nodeplugin"},
		},
	} {
		found := render(t, r, c.chart, c.version, Release{Name: c.release, Namespace: "x", Values: c.values})
		for _, name := range c.has {
			if found[name] == nil {
				t.Errorf("%s %s as %s makes no %s", c.chart, c.version, c.release, name)
			}
		}
		for _, name := range c.lacks {
			if found[name] != nil {
				t.Errorf("%s %s as %s makes %s", c.chart, c.version, c.release, name)
			}
		}
	}
}

func TestValuesOfTheProvisionersChart(t *testing.T) {
	all, err := All(VSphere, "")
	if err != nil {
		t.Fatal(err)
	}
	chart, err := Find(all, "nfs-subdir-external-provisioner", "4.0.18")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		class, values map[string]any
		want, labels  map[string]string
	}{
		{map[string]any{"provisionerName": ""}, nil, nil, map[string]string{"app": chart.Name, "release": "nfs"}},
		{
			map[string]any{"provisionerName": "x/y", "defaultClass": true, "annotations": map[string]any{"a": "b"}},
			map[string]any{"team": "x"},
			map[string]string{"a": "b", "storageclass.kubernetes.io/is-default-class": "true"},
			map[string]string{"app": chart.Name, "release": "nfs", "team": "x"},
		},
	} {
		objects, _, err := chart.Render(
			"nfs", "x", map[string]any{"storageClass": c.class, "labels": c.values, "nfs": map[string]any{"server": "10.0.0.1"}},
		)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			switch o.GetKind() {
			case "StorageClass":
				if !maps.Equal(o.GetAnnotations(), c.want) {
					t.Errorf("the class has %v, want %v", o.GetAnnotations(), c.want)
				}
			case "Deployment":
				got, _, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
				if !maps.Equal(got, c.labels) || o.GetLabels()["team"] != c.labels["team"] ||
					o.GetLabels()["chart"] != "nfs-subdir-external-provisioner-4.0.18" {
					t.Errorf("labels %v, of pods %v, want %v", o.GetLabels(), got, c.labels)
				}
			}
		}
	}
}

func TestVersionsDiffer(t *testing.T) {
	r := start(t)
	schemas := map[string]string{}
	for _, version := range []string{"0.30.2", "0.31.0"} {
		found := render(t, r, "amalthea-sessions", version, Release{Name: "a", Namespace: "x"})
		crd := found["CustomResourceDefinition amaltheasessions.amalthea.dev"]
		data, _ := json.Marshal(crd.Object["spec"])
		schemas[version] = string(data)
		manager := found["Deployment a-amalthea-sessions-controller-manager"]
		if got := manager.GetLabels()["helm.sh/chart"]; got != "amalthea-sessions-"+version {
			t.Errorf("helm.sh/chart is %q", got)
		}
		containers, _, _ := unstructured.NestedSlice(manager.Object, "spec", "template", "spec", "containers")
		if image := containers[0].(map[string]any)["image"]; image != "renku/amalthea-sessions:"+version {
			t.Errorf("image is %v", image)
		}
	}
	if schemas["0.30.2"] == schemas["0.31.0"] {
		t.Error("both versions have one schema")
	}
}

// TestWhatSessionsGet verifies that the settings for sessions are YAML, and that empty settings are omitted.
func TestWhatSessionsGet(t *testing.T) {
	r := start(t)
	keys := func(values map[string]any) map[string]string {
		out := map[string]string{}
		found := render(t, r, "renku", "2.19.3", Release{Name: "renku", Namespace: "renku", Values: values})
		data, _, _ := unstructured.NestedMap(found["Secret renku-notebooks"].Object, "data")
		for key, encoded := range data {
			encoded, _ := encoded.(string) // nil is an empty value
			text, err := base64.StdEncoding.DecodeString(encoded)
			if err != nil {
				t.Fatal(err)
			}
			out[key] = string(text)
		}
		return out
	}
	none := keys(nil)
	for _, key := range []string{"NB_SESSIONS__AFFINITY", "NB_SESSIONS__TOLERATIONS", "NB_SESSIONS__NODE_SELECTOR"} {
		if text, ok := none[key]; ok {
			t.Errorf("%s is %q", key, text)
		}
	}
	affinity := map[string]any{"nodeAffinity": map[string]any{
		"x": []any{map[string]any{"a": true, "b": []any{"1", "c: d"}}, map[string]any{"n": "2"}},
	}}
	cas := []any{map[string]any{"secret": "renku-ca"}, map[string]any{"secret": "other"}}
	some := keys(map[string]any{
		"notebooks": map[string]any{"sessionAffinity": affinity},
		"global":    map[string]any{"certificates": map[string]any{"customCAs": cas}},
	})
	for key, want := range map[string]any{"NB_SESSIONS__AFFINITY": affinity, "NB_SESSIONS__CA_CERTS__SECRETS": cas} {
		var got any
		if err := yaml.Unmarshal([]byte(some[key]), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v %v in %s", key, err, got, some[key])
		}
		if json.Valid([]byte(some[key])) {
			t.Errorf("%s is JSON: %s", key, some[key])
		}
	}
}

// As in upstream, kubeletDir changes only the hostPath volumes.
func TestTheSocketIgnoresTheKubeletDir(t *testing.T) {
	r := start(t)
	values := map[string]any{"kubeletDir": "/var/lib/k0s/kubelet"}
	found := render(t, r, "csi-rclone", "0.6.0", Release{Name: "csi-rclone", Namespace: "x", Values: values})
	data, err := json.Marshal(found["DaemonSet csi-rclone-nodeplugin"].Object)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"--kubelet-registration-path=/var/lib/kubelet/plugins/csi-rclone/csi.sock"`,
		`"path":"/var/lib/k0s/kubelet/plugins/csi-rclone"`,
		`"path":"/var/lib/k0s/kubelet/plugins_registry"`, `"mountPath":"/var/lib/kubelet/pods"`,
	} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("no %s in %s", want, data)
		}
	}
}

func TestWithoutTheValueThereIsNoVolume(t *testing.T) {
	r := start(t)
	for _, name := range []string{"", "kubeconfigs"} {
		values := map[string]any{"dataService": map[string]any{"remoteClustersKubeconfigSecretName": name}}
		found := render(t, r, "renku", "2.19.3", Release{Name: "renku", Namespace: "renku", Values: values})
		for _, service := range []string{"data-service", "k8s-watcher", "data-tasks", "secrets-storage"} {
			volumes, _, _ := unstructured.NestedSlice(
				found["Deployment renku-"+service].Object, "spec", "template", "spec", "volumes",
			)
			if (len(volumes) == 1) != (name != "") {
				t.Errorf("value %q, %s: volumes %v", name, service, volumes)
			}
		}
	}
}

// TestReleaseIsKeptAsHelmDoes decodes the release Secret as Helm does.
func TestReleaseIsKeptAsHelmDoes(t *testing.T) {
	r := start(t)
	release := Release{Name: "renku", Namespace: "renku", Values: map[string]any{"a": "b"}, At: time.Now()}
	secret := render(t, r, "renku", "2.19.3", release)["Secret sh.helm.release.v1.renku.v1"]
	encoded, _, _ := unstructured.NestedString(secret.Object, "data", "release")
	once, err1 := base64.StdEncoding.DecodeString(encoded)
	twice, err2 := base64.StdEncoding.DecodeString(string(once))
	zip, err3 := gzip.NewReader(bytes.NewReader(twice))
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Name  string
		Info  struct{ Status string }
		Chart struct {
			Metadata struct {
				Version      string
				Dependencies []struct{ Name, Version, Repository string }
			}
			Values map[string]any
		}
		Config   map[string]any
		Manifest string
	}
	if err := json.NewDecoder(zip).Decode(&got); err != nil {
		t.Fatal(err)
	}
	deps := got.Chart.Metadata.Dependencies
	if got.Name != "renku" || got.Info.Status != "deployed" || got.Chart.Metadata.Version != "2.19.3" ||
		got.Config["a"] != "b" || len(deps) != 2 {
		t.Errorf("release: %+v", got)
	}
	for _, d := range deps {
		if d.Repository != r.URL {
			t.Errorf("%s comes from %q", d.Name, d.Repository)
		}
	}
	if got.Manifest == "" || got.Chart.Values["notebooks"] == nil {
		t.Error("no manifest or no defaults")
	}
	again := render(t, r, "renku", "2.19.3", release)["Secret sh.helm.release.v1.renku.v1"]
	if other, _, _ := unstructured.NestedString(again.Object, "data", "release"); other != encoded {
		t.Error("the same release gives other bytes")
	}
}

func TestAnUnknownChartIsRefused(t *testing.T) {
	r := start(t)
	for _, version := range []string{"0.30.3", ""} {
		if _, err := r.Find("amalthea-sessions", version); err == nil {
			t.Errorf("version %q was found", version)
		}
	}
	if _, err := Find(nil, "renku", "2.19.3"); err == nil {
		t.Error("found among none")
	}
}

func TestReaperBindsClusterWideOnlyForAll(t *testing.T) {
	all, err := All(OnDemand, "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Find(all, "job-pod-reaper", "v0.14.0")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		situation string
		config    map[string]any
		arg       string
		unlabeled bool
		bound     bool
	}{
		{"its defaults", nil, "--reap-namespaces=all", true, true},
		{"one namespace", map[string]any{"reapNamespaces": "jobs"}, "--reap-namespaces=jobs", true, false},
		{
			"the guide's values",
			map[string]any{"reapNamespaces": false, "objectLabels": "a=b"},
			"--object-labels=a=b", false,
			false,
		},
	} {
		objects, manifest, err := c.Render("job-pod-reaper", "job-pod-reaper", map[string]any{"config": tc.config})
		if err != nil {
			t.Errorf("%s: %v", tc.situation, err)
			continue
		}
		bound := slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == "ClusterRoleBinding" && o.GetName() == "job-pod-reaper"
		})
		if bound != tc.bound || !strings.Contains(manifest, tc.arg) ||
			strings.Contains(manifest, "--object-labels") == tc.unlabeled {
			t.Errorf("%s: bound: %v\n%s", tc.situation, bound, manifest)
		}
	}
}
