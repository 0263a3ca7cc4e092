package ondemand

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// oldToken and newToken have the syntax of a token.
const (
	oldToken = "b2xk.b2xk.b2xk"
	newToken = "bmV3.bmV3.bmV3"
)

// renewalRun is a folder with everything that the script needs, including a fake kubectl that each test scripts.
type renewalRun struct {
	t      *testing.T
	folder string
	r      renewal
}

func newRenewalRun(t *testing.T, kubectl string) renewalRun {
	t.Helper()
	// The path contains characters that the script must quote.
	folder := filepath.Join(t.TempDir(), "a b'$(touch hacked)\"`x`;ä")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	run := renewalRun{t, folder, renewal{
		Kubectl: filepath.Join(folder, "kubectl"), Kubeconfig: filepath.Join(folder, "kube config"),
		Token: filepath.Join(folder, "token"), Hours: 24,
	}}
	run.program("kubectl", "printf '%s\\n' \"$@\" >\"$0.args\"; umask >\"$0.umask\"; "+kubectl)
	run.program("logger", `printf '%s|' "$@" >>"${0%/*}/log"`)
	if err := os.WriteFile(run.r.Token, []byte(oldToken), 0o644); err != nil {
		t.Fatal(err)
	}
	return run
}

func (x renewalRun) program(name, text string) {
	x.t.Helper()
	if err := os.WriteFile(filepath.Join(x.folder, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		x.t.Fatal(err)
	}
}

func (x renewalRun) read(name string) string {
	x.t.Helper()
	b, err := os.ReadFile(filepath.Join(x.folder, name))
	if err != nil && !os.IsNotExist(err) {
		x.t.Fatal(err)
	}
	return string(b)
}

// run runs the script with sh, as the systemd unit does.
func (x renewalRun) run() (output string, err error) {
	x.t.Helper()
	text, err := x.r.script()
	if err != nil {
		x.t.Fatal(err)
	}
	script := filepath.Join(x.t.TempDir(), "renew-token.sh")
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		x.t.Fatal(err)
	}
	if out, err := exec.CommandContext(x.t.Context(), "sh", "-n", script).CombinedOutput(); err != nil {
		x.t.Fatalf("sh -n: %v: %s", err, out)
	}
	command := exec.CommandContext(x.t.Context(), "/bin/sh", script)
	command.Env = []string{"PATH=" + x.folder + ":/usr/sbin:/usr/bin:/sbin:/bin"}
	command.Dir = x.folder
	out, err := command.CombinedOutput()
	return string(out), err
}

// left returns the names of files that the script has left in the folder.
func (x renewalRun) left() []string {
	x.t.Helper()
	entries, err := os.ReadDir(x.folder)
	if err != nil {
		x.t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if !slices.Contains([]string{"kubectl", "logger", "token", "kubectl.args", "kubectl.umask", "log"}, e.Name()) {
			out = append(out, e.Name())
		}
	}
	return out
}

func TestTheRenewalPutsANewTokenInPlace(t *testing.T) {
	x := newRenewalRun(t, "echo "+newToken)
	before, err := os.Stat(x.r.Token)
	if err != nil {
		t.Fatal(err)
	}
	out, err := x.run()
	if err != nil || out != "" {
		t.Fatalf("%v: %s", err, out)
	}
	if got := strings.TrimSpace(x.read("token")); got != newToken {
		t.Errorf("the token file holds %q", got)
	}
	after, err := os.Stat(x.r.Token)
	if err != nil || after.Mode().Perm() != 0o600 || os.SameFile(before, after) {
		t.Errorf("the file has mode %v; it was written in place: %v (%v)", after.Mode(), os.SameFile(before, after), err)
	}
	want := []string{
		"--kubeconfig=" + x.r.Kubeconfig, "--request-timeout=30s", "create", "token", "ondemand", "--namespace=ondemand",
		"--duration=24h",
	}
	if got := strings.Split(strings.TrimSpace(x.read("kubectl.args")), "\n"); !slices.Equal(got, want) {
		t.Errorf("kubectl was run with %q", got)
	}
	if log, left := x.read("log"), x.left(); log != "" || len(left) > 0 {
		t.Errorf("log %q, files left: %q", log, left)
	}
}

func TestARenewalThatFailsKeepsTheOldToken(t *testing.T) {
	for name, c := range map[string]struct{ kubectl, log string }{
		"refused":          {"echo 'error: Forbidden $(touch hacked) -x' >&2; exit 1", "error: Forbidden $(touch hacked) -x"},
		"half an answer":   {"echo " + newToken + "; echo 'error: cut off' >&2; exit 1", "error: cut off"},
		"nothing":          {"exit 0", "is not a token"},
		"an error as such": {"echo 'Forbidden'", "is not a token"},
		"killed":           {"kill -TERM $PPID; echo " + newToken, ""},
	} {
		t.Run(name, func(t *testing.T) {
			x := newRenewalRun(t, c.kubectl)
			out, err := x.run()
			if err == nil {
				t.Errorf("it says that all went well: %s", out)
			}
			if got := x.read("token"); got != oldToken {
				t.Errorf("the token file holds %q", got)
			}
			log := x.read("log")
			if !strings.Contains(log, c.log) || !strings.Contains(out, c.log) ||
				c.log != "" && !strings.HasPrefix(log, "-t|carrick-ondemand-token|-p|daemon.err|--|") {
				t.Errorf("log %q, output %q", log, out)
			}
			if strings.Contains(log+out, newToken) {
				t.Error("the token is in the log")
			}
			if left := x.left(); len(left) > 0 {
				t.Errorf("files left: %q", left)
			}
		})
	}
}

func TestTheRenewalTellsWhatTheServerSaid(t *testing.T) {
	x := newRenewalRun(
		t, "echo 'Warning: requested expiration of 86400 seconds shortened to 3600 seconds' >&2; echo "+newToken,
	)
	if out, err := x.run(); err != nil || strings.TrimSpace(x.read("token")) != newToken {
		t.Errorf("%v: %s", err, out)
	}
	if log := x.read("log"); !strings.Contains(log, "daemon.warning") || !strings.Contains(log, "shortened to 3600") {
		t.Errorf("log %q", log)
	}
}

func TestTheRenewalRefuses(t *testing.T) {
	good := renewal{"/usr/local/bin/kubectl", rootKubeconfig, rootToken, 24}
	for what, change := range map[string]func(*renewal){
		"kubectl.path":   func(r *renewal) { r.Kubectl = "kubectl" },
		"the token file": func(r *renewal) { r.Token = "/etc/x\nrm -rf" },
		"the kubeconfig": func(r *renewal) { r.Kubeconfig = "/etc/../x" },
		"token.hours":    func(r *renewal) { r.Hours = 0 },
	} {
		r := good
		change(&r)
		if text, err := r.script(); err == nil || !strings.HasPrefix(err.Error(), what) {
			t.Errorf("%s: got %v:\n%s", what, err, text)
		}
	}
}

func TestHowOftenAndHowLong(t *testing.T) {
	for hours, want := range map[int]string{
		1: "every 15 minutes, 45 min", 3: "every 15 minutes, 2 h 45 min", 4: "every hour, 3 h", 24: "every hour, 23 h",
	} {
		r := renewal{"/usr/local/bin/kubectl", rootKubeconfig, rootToken, hours}
		if got := r.often() + ", " + hoursAndMinutes(r.outage()); got != want {
			t.Errorf("%d h: %s, not %s", hours, got, want)
		}
		text, err := r.script()
		if err != nil || !strings.Contains(text, r.often()) ||
			!strings.Contains(text, "succeeds for "+hoursAndMinutes(r.outage())+",") {
			t.Errorf("%d h: the script does not say so: %v", hours, err)
		}
	}
	short, long := renewal{Hours: 1}, renewal{Hours: 24}
	for _, c := range []struct{ text, want string }{
		{short.timer(), "\nOnCalendar=*:0/15\n"},
		{long.timer(), "\nOnCalendar=hourly\n"},
		{short.cron(), "\n*/15 * * * * root /bin/sh /etc/ood/hooks/renew-token.sh\n"},
		{long.cron(), "\n17 * * * * root /bin/sh /etc/ood/hooks/renew-token.sh\n"},
		{long.service(), "\nExecStart=/bin/sh /etc/ood/hooks/renew-token.sh\n"},
		{long.timer(), "\nPersistent=true\n"},
	} {
		if !strings.Contains(c.text, c.want) || !strings.HasSuffix(c.text, "\n") {
			t.Errorf("there is no %q in\n%s", c.want, c.text)
		}
	}
}
