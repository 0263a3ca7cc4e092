package toy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cmd/carrick/carricktest"
	"carrick/steps"
	"carrick/steps/linkfile"
)

// inLines returns the input that goes through a guide in lines and undoes it: it applies each step that changes
// something, and then opens the summary.
func inLines(w carricktest.Walk, before map[int]string) string {
	var out strings.Builder
	for step := 1; step <= w.Steps; step++ {
		fmt.Fprintf(&out, "%d\n%s", step, before[step])
		if w.Titles[step] != "" {
			out.WriteString("a\ny\n")
		}
	}
	return out.String() + "summary\nu\ny\nq\n"
}

// heard fails the test unless the output shows that a walk was applied and undone.
func heard(t *testing.T, w carricktest.Walk, out, said string, code int, green, gone string) {
	t.Helper()
	if code != 0 || carricktest.Unfit(out+said) != "" {
		t.Errorf("exit code %d, %q on standard error", code, said)
	}
	at := 0
	for _, want := range append(onTheWay(w), green, `Undo these [0-9]+ resources\? \[y/N\]`, `Done: [0-9]+ changes in `, gone) {
		found := regexp.MustCompile(want).FindStringIndex(out[at:])
		if found == nil {
			t.Fatalf("after what was said before, it never said %q:\n%s", want, out)
		}
		at += found[1]
	}
	for _, wrong := range []string{"Error: ", "is not a choice", "Planning failed"} {
		if strings.Contains(out, wrong) {
			t.Errorf("it said %q:\n%s", wrong, out)
		}
	}
}

// onTheWay returns texts that a walk must print.
func onTheWay(w carricktest.Walk) (out []string) {
	for step := 1; step <= w.Steps; step++ {
		out = append(out, fmt.Sprintf(`(?m)^Step %d of %d: `, step, w.Steps))
		if w.Titles[step] != "" {
			out = append(out, `a applies [0-9]+ change`, `Apply (this|these [0-9]+) changes?\? \[y/N\]`)
			if w.Asks[step] != "" {
				out = append(out, w.Asks[step])
			}
			out = append(out, fmt.Sprintf(`(?m)^step %d of %d, \w+: `, step, w.Steps), `(?m)^Done: [0-9]+ changes? in `)
		}
	}
	return append(out, `(?m)^Summary of `)
}

const greenInLines = `(?m)^All checks pass: `

// linkOn returns a link between both sides of a sandbox, and the environment for its commands.
func linkOn(t *testing.T, box *clustertest.Sandbox, guide string, answers steps.Given) (path, kubeconfig string) {
	t.Helper()
	link := linkfile.New(guide, "lines")
	link.Path = filepath.Join(t.TempDir(), "lines.yaml")
	link.Local, link.Remote = linkfile.EndpointSpec{
		Context: box.Contexts[clustertest.Local],
	}, linkfile.EndpointSpec{Context: box.Contexts[clustertest.Remote]}
	for key, v := range answers {
		link.Answers[key] = v
	}
	if err := link.Save(); err != nil {
		t.Fatal(err)
	}
	return link.Path, "KUBECONFIG=" + box.Kubeconfigs[clustertest.Local] + string(os.PathListSeparator) +
		box.Kubeconfigs[clustertest.Remote]
}
