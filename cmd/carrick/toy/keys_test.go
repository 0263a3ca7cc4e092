package toy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster/clustertest"
	"carrick/cmd/carrick/carricktest"
	"carrick/cmd/carrick/exit"
	"carrick/steps"
	"carrick/steps/stepstest"
)

var throughToy = carricktest.Walk{Steps: 3, Titles: map[int]string{2: "Account", 3: "Register"}}

// Patterns for the screens of the toy guide.
const (
	toyGreen = `1✓ 2✓ 3✓ +1[01] ok( · 1 skipped)? +live`
	toyNone  = `(?s)6 ok · 2 to do · .* later · 1 skipped.*there is no Namespace toy`
	toyWaits = `(?s)\+ spoke: create Secret toy/hub-token.*applying Account.*ServiceAccount toy/hub is not approved yet`
)

// toyAt is a sandbox for the toy guide, with a snapshot of its initial content.
type toyAt struct {
	*testing.T
	box        *clustertest.Sandbox
	kubeconfig string // the environment variable
	before     map[string]string
}

func newToy(t *testing.T) *toyAt {
	t.Helper()
	box := clustertest.Start(t)
	both := box.Kubeconfigs[clustertest.Local] + string(os.PathListSeparator) + box.Kubeconfigs[clustertest.Remote]
	return &toyAt{T: t, box: box, kubeconfig: "KUBECONFIG=" + both, before: stepstest.Snapshot(t, box)}
}

// link writes a link file and returns its path.
func (y *toyAt) link(answers steps.Given) string {
	y.Helper()
	path, _ := linkOn(y.T, y.box, "toy", answers)
	return path
}

// command returns a carrick command with the toy guide, in a separate folder.
func (y *toyAt) command(args ...string) *exec.Cmd {
	y.Helper()
	cmd := exec.CommandContext(y.Context(), "carrick-toy", args...)
	cmd.Dir = y.TempDir()
	cmd.Env = append(carricktest.OwnEnvironment(cmd.Dir), y.kubeconfig)
	return cmd
}

// onTerminal starts such a command on a terminal.
func (y *toyAt) onTerminal(args ...string) *carricktest.Terminal {
	y.Helper()
	return carricktest.StartOnTerminal(y.T, y.command(args...), y.kubeconfig)
}

// approve acts as the spoke's admin while the link waits for approval.
func (y *toyAt) approve() {
	y.Helper()
	y.box.Run(y, clustertest.Remote, "", "-n", "toy", "annotate", "serviceaccount", "hub", "toy/approved=yes")
}

// nothingLeft fails the test unless both clusters have their initial content.
func (y *toyAt) nothingLeft() {
	y.Helper()
	if d := cmp.Diff(y.before, stepstest.Snapshot(y.T, y.box)); d != "" {
		y.Errorf("not as before (-before +after):\n%s", d)
	}
}

// The test starts without a link file, applies the link with keys only until all checks pass, and undoes everything. It
// changes an answer on the way, and the wizard waits for another user while it applies.
func TestToyByKeys(t *testing.T) {
	t.Parallel()
	y := newToy(t)
	p := y.onTerminal()
	for _, screen := range []string{
		`Gives a hub cluster an account`, `(?s)▸ hub +pick a context.*▸ sandbox-`, `(?s)▸ spoke +pick a context.*▸ sandbox-`,
		carricktest.Beginning,
	} {
		p.Wait(screen)
		p.Types("\r")
	}
	w := throughToy
	w.Before = map[int]func(*carricktest.Terminal){2: func(p *carricktest.Terminal) {
		p.Wait(`○ spoke: there is no Namespace toy\s+causes 3 others`)
		p.Types("e")
		p.Wait(`┃ > toy`)
		p.Types("\r")
		p.Wait(`┃ ← no →`)
		p.Types("\x1b[C")
		p.Wait(`┃ ← yes →`)
		p.Types("\x13")
		p.Wait(`1 answer saved`)
		p.Types("d")
		p.Wait(`(?s)Namespace toy.*\+ +toy/hub: `)
		p.Types("\x1b")
	}}
	w.Asks = map[int]string{2: toyWaits}
	w.Meanwhile = map[int]func(){2: y.approve}
	w.Apply(p, 1, 3)
	p.Wait(toyGreen)
	p.Types("n")
	p.Wait(`(?s)✓ all checks pass.*Created by this link.*` +
		`spoke +Secret toy/hub-token.*hub +Secret default/toy-local-remote`)
	p.Types("b")
	p.Wait(w.On(3))
	w.Undo(p)
	p.Wait(toyNone)
	p.Types("q")
	if code := p.Leaves(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.IsAsItWas()
	for _, want := range []string{
		"○ 2 Account", "○ spoke: The namespace exists: there is no Namespace toy", "carrick local-remote.yaml",
	} {
		if !strings.Contains(p.Text(), want) {
			t.Errorf("the farewell lacks %q:\n%s", want, p.Text())
		}
	}
	link, err := carricktest.ReadFile(filepath.Join(p.Cmd.Dir, "local-remote.yaml"))
	if err != nil || !strings.Contains(link, "account.approval: true") {
		t.Errorf("the link file: %v\n%s", err, link)
	}
	if p.Wrote("eyJ") {
		t.Error("a token was shown")
	}
	y.nothingLeft()
}

// If the wizard is killed during an apply, the next run can continue, and undo leaves nothing behind.
func TestToySurvivesAKill(t *testing.T) {
	t.Parallel()
	y := newToy(t)
	link := y.link(steps.Given{"account.approval": true})
	first := y.halfway(link)
	first.Kill()
	<-first.Ended

	second := y.onTerminal(link)
	second.Wait(`step [23] of 3`) // what waits may not have been read yet
	second.Types("2")
	second.Wait(throughToy.On(2))
	second.Wait(`(?s)The token Secret is filled[ ┄]+✓ ok.*The ServiceAccount is approved[ ┄]+◌`)
	y.approve()
	second.Wait(`The ServiceAccount is approved[ ┄]+✓ ok`)
	second.Types("n")
	throughToy.Apply(second, 3, 3)
	second.Wait(toyGreen)
	throughToy.Undo(second)
	second.Wait(toyNone)
	second.Types("q")
	if code := second.Leaves(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	y.nothingLeft()
}

// Ctrl+c stops an apply, and the wizard says what was done and what to do next. Another ctrl+c exits the wizard.
func TestToyIsInterruptedByAKey(t *testing.T) {
	t.Parallel()
	y := newToy(t)
	p := y.halfway(y.link(steps.Given{"account.approval": true}))
	p.Types("\x03")
	p.Wait(`(?s)! stopped by you after 4 changes.*spoke:\s+ServiceAccount toy/hub.*these\s+changes\s+are\s+kept.*` +
		`a continues.*carrick\s+apply\s+\S*lines\.yaml\s+--step\s+account`)
	y.approve()
	p.Wait(`The ServiceAccount is approved[ ┄]+✓ ok`)
	p.Types("n")
	throughToy.Apply(p, 3, 3)
	p.Wait(toyGreen)
	throughToy.Undo(p)
	p.Wait(toyNone)
	p.Types("\x03")
	if code := p.Leaves(); code != exit.Interrupted {
		t.Errorf("exit code %d, not %d", code, exit.Interrupted)
	}
	p.IsAsItWas()
	y.nothingLeft()
}

// halfway returns a wizard that has created the account, and waits for its approval.
func (y *toyAt) halfway(link string) *carricktest.Terminal {
	y.Helper()
	p := y.onTerminal(link)
	p.Wait(throughToy.On(2))
	p.Wait(carricktest.CanApply)
	p.Types("a")
	p.Wait(carricktest.Confirming)
	p.Types("y")
	p.Wait(toyWaits)
	return p
}
