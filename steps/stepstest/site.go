package stepstest

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps"
	"carrick/steps/engine"
)

// Site is a faulty setup of the sandbox with a session. It runs checks and carries out their fixes.
type Site struct {
	*engine.Session
	Box *clustertest.Sandbox
	t   testing.TB
}

// SiteOf returns the seeded setup and a link with answers. If adopted is true, the link also adopts the existing setup.
func SiteOf(
	t testing.TB, box *clustertest.Sandbox, g *steps.Guide, assets fs.FS, adopted bool, answers map[string]any,
) *Site {
	t.Helper()
	x := &Site{t: t, Box: box, Session: Open(t, box, g, assets, "demo", answers)}
	t.Cleanup(x.Close)
	x.Link().Path = filepath.Join(t.TempDir(), "demo.yaml")
	if !adopted {
		return x
	}
	found, err := x.Adopt(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := x.SaveAdopted(found); err != nil {
		t.Fatal(err)
	}
	return x
}

// Reds returns the verdicts other than pass and skip. The keys are "check@side".
func (x *Site) Reds() map[string]steps.Result {
	x.t.Helper()
	x.Forget()
	out := map[string]steps.Result{}
	b, _ := x.Look(x.t.Context(), x.Guide().Cells())
	for _, c := range x.Guide().Cells() {
		if v := b.Verdict(c); v.Status != steps.Pass && v.Status != steps.Skip {
			out[c.Check+"@"+string(c.Side)] = v
		}
	}
	return out
}

// Of returns the verdict of a check. For a check of both sides, it returns the local verdict.
func (x *Site) Of(check string) steps.Result {
	x.t.Helper()
	cell := x.cell(check)
	b, _ := x.Look(x.t.Context(), x.Guide().Cells())
	return b.Verdict(cell)
}

func (x *Site) cell(check string) steps.Cell {
	x.t.Helper()
	c, step := x.Guide().Check(check)
	if c == nil {
		x.t.Fatalf("check %s does not exist", check)
	}
	side := c.On
	if side == steps.Both {
		side = steps.Local
	}
	return steps.Cell{Step: step.Name, Check: check, Side: side}
}

// Named verifies that a check does not pass, and that its finding and its fix contain the given words. It waits,
// because a recent fault might not show immediately.
func (x *Site) Named(check, found, fix string) steps.Result {
	x.t.Helper()
	named := func(v steps.Result) bool {
		bad := v.Status == steps.Fail || v.Status == steps.Warn || v.Status == steps.Unknown
		return bad && strings.Contains(v.Found, found) && strings.Contains(v.Fix, fix) && v.Fix != ""
	}
	v := x.Of(check)
	if named(v) {
		return v
	}
	v, err := x.until(check, named)
	if err != nil {
		x.t.Errorf("%s is %s: %q, want %q\nfix %q, want %q", check, v.Status, v.Found, found, v.Fix, fix)
	}
	return v
}

// Finding describes what a check must report about a fault. Found and Fix are words in its finding and its fix. If
// Fixed is true, the test runs the printed fix, and the check must then pass.
type Finding struct {
	Check, Found, Fix string
	Fixed             bool
}

// Finds first verifies all the findings and then carries out the fixes.
func (x *Site) Finds(all []Finding) {
	x.t.Helper()
	x.Forget()
	was := map[string]steps.Result{}
	for _, f := range all {
		was[f.Check] = x.Named(f.Check, f.Found, f.Fix)
	}
	for _, f := range all {
		if f.Fixed {
			x.Mends(f.Check, was[f.Check])
		}
	}
}

// Mends carries out the printed fix of a check, unless the fix of another check has already helped. It verifies that
// the check then passes. was is the earlier verdict of the check. A verdict without a fix, such as that of a policy that
// has just been bound, does not last: Mends waits for the next.
func (x *Site) Mends(check string, was steps.Result) {
	x.t.Helper()
	now, err := x.until(check, func(v steps.Result) bool { return isFixed(v) || v.Status == steps.Skip || v.Fix != "" })
	if isFixed(now) {
		return
	}
	if err != nil {
		x.t.Errorf("%s has no fix: %s: %s", check, now.Status, now.Found)
		return
	}
	fix := now.Fix
	if now.Status == steps.Skip { // a check that it needs does not pass yet
		fix = was.Fix
	}
	x.Fix(fix)
	x.Holds(check, fix)
}

// isFixed reports whether nothing remains to fix. A skip counts as fixed unless another check blocks it.
func isFixed(v steps.Result) bool {
	return v.Status == steps.Pass || v.Status == steps.Skip && !strings.Contains(v.Found, "blocked by")
}

// Holds waits until a check passes.
func (x *Site) Holds(check, after string) {
	x.t.Helper()
	if v, err := x.until(check, isFixed); err != nil {
		x.t.Errorf("%s after %q: %s: %s", check, after, v.Status, v.Found)
	}
}

// until probes a check until wanted returns true.
func (x *Site) until(check string, wanted func(steps.Result) bool) (v steps.Result, err error) {
	x.t.Helper()
	cell := x.cell(check)
	x.Forget()
	ctx, cancel := context.WithTimeout(x.t.Context(), greenWithin)
	defer cancel()
	err = x.Follow(ctx, x.Guide().Cells(), func(b *engine.Board, _ map[steps.Cell]engine.Look, _ steps.Cell) bool {
		v = b.Verdict(cell)
		return !wanted(v)
	})
	return v, err
}

var (
	applyLine = regexp.MustCompile(`carrick apply \S+((?: --step \S+)*)`)
	stepFlag  = regexp.MustCompile(`--step (\S+)`)
	onMachine = regexp.MustCompile(`^run on the [a-z -]+: `)
	itsFiles  = regexp.MustCompile(` /(etc|root|var|home|opt)/`)
)

// Fix carries out a fix. It runs carrick commands in the engine, and other commands in a shell that has kubectl. It
// runs a machine's commands in the directory that represents the machine. The current user owns the files in that
// directory.
func (x *Site) Fix(text string) {
	x.t.Helper()
	if there := onMachine.FindString(text); there != "" {
		line := itsFiles.ReplaceAllString(strings.TrimPrefix(text, there), " "+x.machine()+"/$1/")
		x.shell(strings.ReplaceAll(line, "-o root -g root ", ""))
		return
	}
	var shell []string
	did := false
	run := func() {
		if len(shell) > 0 {
			x.shell(strings.Join(shell, "\n"))
		}
		shell = nil
	}
	for line := range strings.Lines(strings.ReplaceAll(text, " && carrick apply ", "\ncarrick apply ")) {
		line = strings.TrimSuffix(line, "\n")
		kubectl := strings.HasPrefix(line, "kubectl ")
		switch {
		case !kubectl && applyLine.MatchString(line):
			run()
			first, then, both := strings.Cut(line, " && ")
			x.apply(first)
			if both {
				shell = append(shell, then)
			}
			did = true
		case kubectl || len(shell) > 0: // the following lines can be the command's input
			shell, did = append(shell, line), true
		}
	}
	run()
	if !did {
		x.t.Errorf("the test cannot run the fix: %s", text)
	}
}

// apply runs a carrick apply command in the engine.
func (x *Site) apply(text string) {
	x.t.Helper()
	lines := applyLine.FindAllStringSubmatch(text, -1)
	var scope engine.Scope
	for _, line := range lines {
		for _, flag := range stepFlag.FindAllStringSubmatch(line[1], -1) {
			scope.Steps = append(scope.Steps, flag[1])
		}
	}
	p, err := x.Plan(x.t.Context(), scope)
	if err == nil {
		err = x.Apply(x.t.Context(), p, steps.ApplyOptions{TakeOver: true, Replace: true}, nil)
	}
	if err != nil {
		x.t.Errorf("%s: %v", text, err)
	}
}

func (x *Site) machine() string {
	x.t.Helper()
	for _, side := range steps.Sides {
		if root := x.Box.Hosts[string(side)]; root != "" {
			return root
		}
	}
	x.t.Fatal("no side is a machine")
	return ""
}

func (x *Site) shell(line string) {
	x.t.Helper()
	cmd := exec.CommandContext(x.t.Context(), "sh", "-ec", line)
	configs := []string{x.Box.Kubeconfigs[clustertest.Local], x.Box.Kubeconfigs[clustertest.Remote]}
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(x.Box.Kubectl)+string(os.PathListSeparator)+os.Getenv("PATH"),
		"KUBECONFIG="+strings.Join(configs, string(os.PathListSeparator)))
	if out, err := cmd.CombinedOutput(); err != nil {
		x.t.Errorf("%s: %v: %s", line, err, out)
	}
}
