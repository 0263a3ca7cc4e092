package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster"
	"carrick/cluster/chart"
	"carrick/cluster/clustertest"
	"carrick/cluster/masked"
	"carrick/steps/engine"
	"carrick/steps/stepstest"
)

// exportOf returns the exported items of one action, one per line.
func exportOf(t *testing.T, s *engine.Session, action string) string {
	t.Helper()
	e, err := s.Export(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, a := range e.Actions {
		if a.Action != action {
			continue
		}
		for _, x := range a.Things {
			switch {
			case x.Object != nil:
				out = append(
					out,
					fmt.Sprintf(
						"object %s %s/%s %v", x.Object.GetKind(), x.Object.GetNamespace(), x.Object.GetName(), x.Object.GetAnnotations(),
					),
				)
				if text := fmt.Sprint(x.Object.Object); strings.Contains(text, "<nil>") &&
					x.Object.GetKind() != "CustomResourceDefinition" {
					t.Errorf("a null is in %s", text)
				}
			case x.Path != "":
				out = append(out, "file "+x.Path+" "+strings.ReplaceAll(strings.TrimSpace(string(x.Content)), "\n", "; "))
			case x.Left != "":
				out = append(out, "left "+x.Left)
			case x.Hand != "":
				out = append(out, "hand "+x.Hand)
			default:
				out = append(out, "note "+x.Note)
			}
		}
	}
	return strings.Join(out, "\n")
}

// An export of a chart equals the output of helm template without secrets. It is the same while the chart is installed.
func TestAnExportOfAChart(t *testing.T) {
	t.Parallel()
	const ns = "chart-export"
	s, _ := charting(t, "exporting", ns, true, map[string]any{
		"message": "hi", "widget": "w", "hook": map[string]any{"enabled": true}, "password": masked.New("correct-horse"),
	}, 0)
	fresh := exportOf(t, s, "install")
	want := `object CustomResourceDefinition /tinywidgets.tiny.example.org map[]
left Secret chart-export/tiny (keys password, random): the chart creates it; create it manually, or manage the release with Helm
object ConfigMap chart-export/tiny map[]
object Deployment chart-export/tiny map[]
object TinyWidget chart-export/w map[]
note hooks, which only Helm runs: ConfigMap tiny-hook
note chart tiny 0.1.0 of ../../cluster/chart/testdata/tiny, release tiny in namespace chart-export, rendered with files/remote/install.values.yaml
note to manage the release with Helm instead, remove install.* from remote/kustomization.yaml and run:
helm --kube-context sandbox-remote upgrade --install tiny ../../cluster/chart/testdata/tiny -n chart-export -f files/remote/install.values.yaml
file install.values.yaml hook:;   enabled: true; message: hi; widget: w
left values of chart tiny: password`
	if d := cmp.Diff(want, fresh); d != "" {
		t.Error(d)
	}
	stepstest.Apply(t, s)
	if d := cmp.Diff(fresh, exportOf(t, s, "install")); d != "" {
		t.Errorf("when it stands (-fresh +standing):\n%s", d)
	}
	stepstest.Undo(t, s)
}

// An export finds a secret value wherever a template has put it.
func TestAnExportOfAChartHidesASecretInTheOpen(t *testing.T) {
	t.Parallel()
	const ns = "chart-hides"
	s, _ := charting(t, "hiding", ns, false, map[string]any{"message": masked.New("correct-horse")}, 0)
	got := exportOf(t, s, "install")
	if strings.Contains(got, "correct-horse") || strings.Contains(got, "object ConfigMap") ||
		!strings.Contains(got, "left ConfigMap chart-hides/tiny, which contains a secret value") {
		t.Error(got)
	}
}

// If Helm manages the release for another user, the export does not contain its objects.
func TestAnExportOfAReleaseThatHelmKeeps(t *testing.T) {
	t.Parallel()
	const ns = "chart-kept"
	space(t, ns)
	s, box := charting(t, "kept", ns, false, map[string]any{"message": "ours"}, 0)
	theirs := chart.Request{
		Name: "tiny", Namespace: ns, Source: tinyChart, Chart: "tiny", Version: "0.1.0", Manager: "helm",
	}
	c := box.Open(t, clustertest.Remote, cluster.Options{})
	if err := chart.Install(t.Context(), c, theirs, nil); err != nil {
		t.Fatal(err)
	}
	want := `file install.values.yaml message: ours
note Helm manages Release chart-kept/tiny, which carrick did not create: its objects are not in this export
hand helm --kube-context sandbox-remote upgrade --install tiny ../../cluster/chart/testdata/tiny -n chart-kept -f files/remote/install.values.yaml`
	if d := cmp.Diff(want, exportOf(t, s, "install")); d != "" {
		t.Error(d)
	}
}
