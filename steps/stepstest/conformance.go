package stepstest

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/steps"
)

// Conformance sends every asset of a guide to a real API server, as a dry run with strict field validation. The assets
// are rendered as in Golden. Missing namespaces are created for the duration of the test.
func Conformance(
	t *testing.T, box *clustertest.Sandbox, g *steps.Guide, assets fs.FS, dir string, answers map[string]any,
) {
	t.Helper()
	sides := map[steps.Side]*cluster.Cluster{}
	for _, side := range steps.Sides {
		sides[side] = box.Open(t, string(side), cluster.Options{Once: true})
	}
	looked := 0
	for _, r := range rendered(t, g, assets, dir, answers) {
		for _, obj := range r.objects {
			haveNamespace(t, box, r.side, obj.GetNamespace())
			dryRun(t, sides[r.side], r.file, obj)
			looked++
		}
	}
	if looked == 0 {
		t.Fatal("the guide renders nothing")
	}
}

func dryRun(t *testing.T, c *cluster.Cluster, file string, obj *unstructured.Unstructured) {
	t.Helper()
	try := func(o *unstructured.Unstructured) error {
		_, err := c.Apply(t.Context(), o, cluster.ApplyOptions{Manager: "carrick.conformance", DryRun: true})
		return err
	}
	if err := try(obj); err != nil {
		t.Errorf("asset %s: %v", file, err)
		return
	}
	unknown := obj.DeepCopy()
	unknown.Object["carrickUnknown"] = "x"
	if try(unknown) == nil {
		t.Errorf("asset %s: the API server accepts %s with an unknown field, so the test proves nothing", file, obj.GetKind())
	}
}

func haveNamespace(t *testing.T, box *clustertest.Sandbox, side steps.Side, name string) {
	t.Helper()
	if name == "" || box.Run(t, string(side), "", "get", "namespace", name, "--ignore-not-found", "-o", "name") != "" {
		return
	}
	box.Run(t, string(side), "", "create", "namespace", name)
	box.Cleanup(t, string(side), "delete", "namespace", name)
}

// upstreamDir is the environment variable with the path of upstream's own definitions. That directory has one
// subdirectory per project.
const upstreamDir = "CARRICK_UPSTREAM"

// Upstream returns the path of a file in an upstream project. By default the projects are in a directory next to the
// repository. root is the path of the repository. If that directory does not exist, Upstream skips the test and reports
// what it would have verified.
func Upstream(t *testing.T, root, file, proves string) string {
	t.Helper()
	dir := os.Getenv(upstreamDir)
	if dir == "" {
		dir = filepath.Join(root, "..", "shared", "upstream")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("skipped: %s, because the upstream definitions are missing (%s is their directory)", proves, upstreamDir)
	}
	path := filepath.Join(dir, filepath.FromSlash(file))
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("upstream definitions: %v", err)
	}
	return path
}

// Define installs upstream's CRDs for the duration of the test. It waits until they are served.
func Define(t *testing.T, box *clustertest.Sandbox, side steps.Side, files ...string) {
	t.Helper()
	args := []string{"apply", "--server-side", "--validate=strict", "-o", "name"}
	for _, file := range files {
		args = append(args, "-f", file)
	}
	names := strings.Fields(box.Run(t, string(side), "", args...))
	box.Cleanup(t, string(side), append([]string{"delete"}, names...)...)
	established(t, box, side, names)
}

// NeededCRDs returns, for each side, the CRDs of the kinds that the guide renders on that side. Each of the given files
// contains one of upstream's CRDs, and has the name that controller-gen gives it: GROUP_PLURAL.yaml.
func NeededCRDs(
	t *testing.T, g *steps.Guide, assets fs.FS, dir string, answers map[string]any, files []string,
) map[steps.Side][]string {
	t.Helper()
	needed := map[steps.Side][]string{}
	for _, r := range rendered(t, g, assets, dir, answers) {
		for _, obj := range r.objects {
			plural, _ := meta.UnsafeGuessKindToResource(obj.GroupVersionKind())
			name := plural.Group + "_" + plural.Resource + ".yaml"
			for _, file := range files {
				if filepath.Base(file) == name && !slices.Contains(needed[r.side], file) {
					needed[r.side] = append(needed[r.side], file)
				}
			}
		}
	}
	return needed
}

// established waits until the API server serves the CRDs. It does not use kubectl wait, which fails while an object has
// no conditions at all.
func established(t *testing.T, box *clustertest.Sandbox, side steps.Side, names []string) {
	t.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for late := time.After(5 * time.Minute); ; {
		var all struct {
			Items []struct {
				Metadata struct{ Name string }
				Status   struct {
					Conditions []struct{ Type, Status string }
				}
			}
		}
		text := box.Run(t, string(side), "", "get", "customresourcedefinitions", "-o", "json")
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatal(err)
		}
		left := slices.Clone(names) // each as TYPE/NAME
		for _, d := range all.Items {
			for _, c := range d.Status.Conditions {
				if c.Type == "Established" && c.Status == "True" {
					left = slices.DeleteFunc(left, func(name string) bool { return path.Base(name) == d.Metadata.Name })
				}
			}
		}
		if len(left) == 0 {
			return
		}
		select {
		case <-again.C:
		case <-late:
			t.Fatalf("the API server does not serve %v after 5 min", left)
		}
	}
}
