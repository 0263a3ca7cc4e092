package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps"
	"carrick/steps/stepstest"
)

// inLines are the answers that walk through a guide and take it back: a step
// that changes something is applied, then the summary.
func inLines(w walk, before map[int]string) string {
	var out strings.Builder
	for step := 1; step <= w.steps; step++ {
		fmt.Fprintf(&out, "%d\n%s", step, before[step])
		if w.titles[step] != "" {
			out.WriteString("a\ny\n")
		}
	}
	return out.String() + "summary\nu\ny\nq\n"
}

// heard fails unless a walk was made and taken back, and says why not.
func heard(t *testing.T, w walk, out, said string, code int, green, gone string) {
	t.Helper()
	if code != 0 || unfit(out+said) != "" {
		t.Errorf("exit code %d, %q on standard error", code, said)
	}
	at := 0
	for _, want := range append(w.heard(), green, `Take back these [0-9]+ things\? \[y/N\]`, `Done: [0-9]+ changes in `, gone) {
		found := regexp.MustCompile(want).FindStringIndex(out[at:])
		if found == nil {
			t.Fatalf("after what was said before, it never said %q:\n%s", want, out)
		}
		at += found[1]
	}
	for _, wrong := range []string{"This went wrong", "is none of the choices", "can't be planned"} {
		if strings.Contains(out, wrong) {
			t.Errorf("it said %q:\n%s", wrong, out)
		}
	}
}

// heard is what is said on the way.
func (w walk) heard() (out []string) {
	for step := 1; step <= w.steps; step++ {
		out = append(out, fmt.Sprintf(`(?m)^Step %d of %d: `, step, w.steps))
		if w.titles[step] != "" {
			out = append(out, `a applies [0-9]+ change`, `Apply (this|these [0-9]+) changes?\? \[y/N\]`)
			if w.asks[step] != "" {
				out = append(out, w.asks[step])
			}
			out = append(out, fmt.Sprintf(`(?m)^step %d of %d, \w+: `, step, w.steps), `(?m)^Done: [0-9]+ changes? in `)
		}
	}
	return append(out, `(?m)^Summary of `)
}

const greenInLines = `(?m)^All is green: `

// From two clusters with Liqo to an offloaded namespace and back, by answers
// that come from a pipe.
func TestAPeeringIsMadeInLines(t *testing.T) {
	stepstest.InTurn(t)
	if os.Getenv(clustertest.Program) == "" {
		t.Skipf("%s is not set: it is the path of carrick-sandbox (make sandbox)", clustertest.Program)
	}
	cmd := demoCommand(t, program(t), "liqo")
	cmd.Stdin = strings.NewReader(inLines(throughLiqo, nil))
	out, said, code := finish(t, cmd)
	said = regexp.MustCompile(`(?m)^.*…\n`).ReplaceAllString(said, "") // how the demo starts
	heard(t, throughLiqo, out, said, code, greenInLines, `(?s)Not all is green: .*The clusters of the demo are gone`)
	if !strings.Contains(out, "demo: two control planes on this machine") || !strings.Contains(out, "kubectl --context") {
		t.Errorf("it does not say which clusters these are:\n%s", out)
	}
}

// linkOn is a link between both sides of a sandbox, and the environment in which
// it can be used.
func linkOn(t *testing.T, box *clustertest.Sandbox, guide string, answers steps.Given) (path, kubeconfig string) {
	t.Helper()
	link := steps.NewLink(guide, "lines")
	link.Path = filepath.Join(t.TempDir(), "lines.yaml")
	link.Local, link.Remote = steps.EndSpec{Context: box.Contexts[clustertest.Local]}, steps.EndSpec{Context: box.Contexts[clustertest.Remote]}
	for key, v := range answers {
		link.Answers[key] = v
	}
	if err := link.Save(); err != nil {
		t.Fatal(err)
	}
	return link.Path, "KUBECONFIG=" + box.Kubeconfigs[clustertest.Local] + string(os.PathListSeparator) + box.Kubeconfigs[clustertest.Remote]
}

// From nothing to a registered cluster with a pool and back, by a pipe. Lines
// were asked for, so somebody is there to sign in.
func TestARenkuClusterIsMadeInLines(t *testing.T) {
	box := clustertest.Start(t)
	box.Reset(t)
	box.Seed(t, "renku")
	path, kubeconfig := linkOn(t, box, "renku", nil)
	cmd := carrick(t, "--accessible", path)
	cmd.Env = append(cmd.Env, kubeconfig)
	cmd.Stdin = strings.NewReader(inLines(throughRenku, nil))
	out, said, code := finish(t, cmd)
	heard(t, throughRenku, out, said, code, greenInLines, `(?m)^Not all is green: `)
	if !regexp.MustCompile(`(?m)^https://\S+STAND-IN-`).MatchString(out) {
		t.Errorf("the address to sign in stands on no line of its own:\n%s", out)
	}
}

// The same on a terminal that can do nothing but lines.
func TestAPeeringOnAPlainTerminal(t *testing.T) {
	stepstest.InTurn(t)
	box := clustertest.Start(t)
	box.Reset(t)
	box.Seed(t, "liqo")
	path, kubeconfig := linkOn(t, box, "liqo", steps.Given{"offloading.namespace": "plain-demo"})
	cmd := carrick(t, path)
	p := startOnTerminal(t, cmd, kubeconfig, "TERM=dumb")
	w := throughLiqo
	p.wait(`Step 2, Tenant namespaces:`)
	for step := 2; step <= w.steps; step++ {
		p.types(fmt.Sprintf("%d\n", step))
		p.wait(fmt.Sprintf(`(?s)Choices: .*Step %d, %s:\s*$`, step, w.titles[step]))
		p.types("a\n")
		p.wait(`Apply (this|these [0-9]+) changes?\?\s+\[y/N\]\s*$`)
		p.types("y\n")
		p.wait(fmt.Sprintf(`(?s)Done: .*In this step: .*Step %d, %s:\s*$`, step, w.titles[step]))
	}
	p.types("s\n")
	p.wait(`All is green|All in all|Summary:\s*$`)
	p.types("u\n")
	p.wait(`Take back these [0-9]+ things\? \[y/N\]\s*$`)
	p.types("y\n")
	p.wait(`(?s)Step 9, Offloading: .*Summary:\s*$`)
	p.types("q\n")
	if code := p.leaves(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, p.text())
	}
	if !p.wrote("All is green: ") || !p.wrote("Not all is green: ") || p.wrote("\x1b") {
		t.Errorf("it was not green, or not taken back, or wrote an escape sequence:\n%s", p.text())
	}
}
