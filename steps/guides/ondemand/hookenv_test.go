package ondemand

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bash runs a script in bash and returns its output. It skips the test if bash is not installed.
func bash(t *testing.T, script string, args ...string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not on this machine, so hook.env is not read with it")
	}
	c := exec.Command("bash", append([]string{"-c", script, "bash"}, args...)...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8"}
	c.Dir = t.TempDir()
	out, err := c.CombinedOutput()
	return string(out), err
}

// bothWays reads a hook.env in both ways of upstream's hook: with source and with export. It prints the value of a key
// in the environment of a child process.
const bothWays = `set -e
source "$1"
export $(grep -Ev "^#" "$1" | cut -d= -f1)
env -0 | grep -z "^$2=" | tr -d '\0'`

func envOn(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hook.env")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A value of any content that carrick writes to hook.env is read back unchanged: by both of bash's ways to read the
// file, and by carrick's parser.
func TestHookEnvSurvivesBothReaders(t *testing.T) {
	for _, value := range []string{
		"", "plain", "two words", ` lead and trail `, `a"b`, "a'b", "''", `a\b`, `a\`, `\`, "$HOME", "$(touch pwned)",
		"`touch pwned`", "a;b", "a&b|c>d<e", "#no", "a #b",
		"~", "*", "?[a]", "!!", "a=b=c", "{a,b}", "ü…", "%s", "-n", "(a)", "true", "x'\"$`\\ !#;&|",
	} {
		var f envFile
		if err := f.set("CLIENT_SECRET", value); err != nil {
			t.Fatalf("%q: %v", value, err)
		}
		if err := f.set("CLIENT_ID", "after"); err != nil {
			t.Fatal(err)
		}
		if faults := f.lint(); len(faults) > 0 {
			t.Errorf("%q: %v", value, faults)
		}
		path := envOn(t, f.String())
		got, err := bash(t, bothWays, path, "CLIENT_SECRET")
		if err != nil || got != "CLIENT_SECRET="+value {
			t.Errorf("%q as %s: bash reads %q, %v", value, f, got, err)
		}
		if got, err := bash(t, bothWays, path, "CLIENT_ID"); err != nil || got != "CLIENT_ID=after" {
			t.Errorf("%q: the line after it is %q, %v", value, got, err)
		}
		if back, err := parseEnv(f.String()).get("CLIENT_SECRET"); err != nil || back != value {
			t.Errorf("%q: read back as %q, %v", value, back, err)
		}
	}
}

func TestHookEnvRefuses(t *testing.T) {
	for _, tc := range []struct{ key, value, why string }{
		{"CLIENT_SECRET", "a\nUSE_JOB_POD_REAPER=true", "line break"},
		{"CLIENT_SECRET", "a\r", "line break"},
		{"CLIENT_SECRET", "a\x00b", "nonprintable"},
		{"CLIENT_SECRET", "a\x1bb", "nonprintable"},
		{"NAMESPACE_PREFIX", "user $(id)", "into YAML"},
		{"NAMESPACE_PREFIX", "user\"", "into YAML"},
		{"NETWORK_POLICY_ALLOW_CIDR", "10.0.0.0/8, 192.168.0.0/16", "into YAML"},
	} {
		var f envFile
		err := f.set(tc.key, tc.value)
		if err == nil || !strings.Contains(err.Error(), tc.why) || f.String() != "" {
			t.Errorf("%s %q: %v, %q", tc.key, tc.value, err, f)
		}
		if err != nil && tc.key == "CLIENT_SECRET" && strings.Contains(err.Error(), tc.value) {
			t.Errorf("%v tells the secret", err)
		}
	}
}

// The linter reports exactly the lines that bash, in one of the hook's two ways to read the file, interprets other than
// they look.
func TestHookEnvLintAgreesWithBash(t *testing.T) {
	const script = `set -e
source "$1"
export $(grep -Ev "^#" "$1" | cut -d= -f1)
[ "$(env | grep -c '^NAMESPACE_PREFIX=user-$')" = 1 ] && [ "$(env | grep -c '^USE_JOB_POD_REAPER=true$')" = 1 ]`
	for _, tc := range []struct {
		line string
		at   string
	}{
		{line: "# a comment"},
		{line: ""},
		{line: "  "},
		{line: `  CLIENT_ID="x"`},
		{line: `CLIENT_ID=x # note`},
		{line: `CLIENT_ID='a b'`},
		{line: `CLIENT_ID=a\ b`},
		{line: `CLIENT_ID="a"'b'c`},
		{line: "export CLIENT_ID=x"},
		{line: "  export  CLIENT_ID='a b' # note"},
		{line: "export CLIENT_ID"},
		{line: "export CLIENT_ID=x CLIENT_SECRET='a b'"},
		{line: "CLIENT_ID=x CLIENT_SECRET=y"},
		{line: "CLIENT_ID=x; CLIENT_SECRET=y # note"},
		{line: "CLIENT_ID=x ;export CLIENT_SECRET=y"},
		{line: "CLIENT_ID=x;"},
		{line: "CLIENT_ID=x; # note"},
		{line: "export CLIENT-ID=x", at: "line 2, column 1: the text before the ="},
		{line: "export CLIENT_ID =x", at: "line 2, column 1: the text before the ="},
		{
			line: "CLIENT_ID=x CLIENT_SECRET=two words",
			at:   "line 2, column 27: CLIENT_SECRET: the value ends at the first space",
		},
		{line: "  # indented", at: "line 2, column 3: the comment is indented"},
		{line: "CLIENT_ID =x", at: "line 2, column 1: there is a space before the ="},
		{line: "CLIENT_ID", at: "line 2, column 1: the line is not a setting"},
		{line: "CLIENT-ID=x", at: "line 2, column 1: the text before the ="},
		{line: "CLIENT_ID=two words", at: "line 2, column 11: CLIENT_ID: the value ends at the first space"},
		{line: `CLIENT_ID="open`, at: `line 2, column 11: CLIENT_ID: a quote (") is not closed`},
		{line: "CLIENT_ID='open", at: "line 2, column 11: CLIENT_ID: a quote (') is not closed"},
		{line: "CLIENT_ID=$(false)", at: "line 2, column 11: CLIENT_ID: bash expands $"},
		{line: "CLIENT_ID=a;false", at: "line 2, column 11: CLIENT_ID: the value ends at ;"},
		{line: `CLIENT_ID=a\`, at: `line 2, column 11: CLIENT_ID: a trailing backslash`},
	} {
		text := "NAMESPACE_PREFIX=user-\n" + tc.line + "\nUSE_JOB_POD_REAPER=true\n"
		faults := parseEnv(text).lint()
		said := ""
		if len(faults) > 0 {
			said = faults[0].String()
		}
		if (tc.at == "") != (said == "") || !strings.HasPrefix(said, tc.at) {
			t.Errorf("%q: lint says %q, want %q", tc.line, said, tc.at)
		}
		out, err := bash(t, script, envOn(t, text))
		if (err == nil) != (tc.at == "") {
			t.Errorf("%q: bash says %v (%s), lint %q", tc.line, err, out, said)
		}
	}
	crlf := "NAMESPACE_PREFIX=user-\r\nUSE_JOB_POD_REAPER=true\r\n"
	if out, err := bash(t, script, envOn(t, crlf)); err == nil {
		t.Errorf("bash reads CR LF as it looks: %s", out)
	}
	if faults := parseEnv(crlf).lint(); len(faults) != 2 {
		t.Errorf("CR LF: %v", faults)
	}
}

// Windows line endings are not part of the values.
func TestValuesOfAHookEnvFromWindows(t *testing.T) {
	f := parseEnv(
		"NAMESPACE_PREFIX=\"user-\"\r\nCLIENT_ID=x CLIENT_SECRET='y'\r\n\r\n# note\r\nUSE_JOB_POD_REAPER=true\r\n",
	)
	for key, want := range map[string]string{
		"NAMESPACE_PREFIX": "user-", "CLIENT_ID": "x", "CLIENT_SECRET": "y", "USE_JOB_POD_REAPER": "true",
	} {
		if got, err := f.get(key); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", key, got, err, want)
		}
	}
	if err := f.set("NAMESPACE_PREFIX", "user-"); err != nil {
		t.Fatal(err)
	}
	f.fixWhitespace()
	want := "NAMESPACE_PREFIX=\"user-\"\nCLIENT_ID=x CLIENT_SECRET='y'\n\n# note\nUSE_JOB_POD_REAPER=true\n"
	if got := f.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHookEnvIsEditedInPlace(t *testing.T) {
	have := `# our hook.env
K8S_USERNAME_PREFIX=""

# who may come in
NETWORK_POLICY_ALLOW_CIDR="127.0.0.1/32" # ask the network people
NAMESPACE_PREFIX='user-'
#USE_JOB_POD_REAPER=false
OURS=1
`
	f := parseEnv(have)
	for _, kv := range [][2]string{
		{"NETWORK_POLICY_ALLOW_CIDR", "10.0.0.0/8"},
		{"NAMESPACE_PREFIX", "user-"},
		{"USE_JOB_POD_REAPER", "true"},
		{"CLIENT_ID", "kube"},
	} {
		if err := f.set(kv[0], kv[1]); err != nil {
			t.Fatal(err)
		}
	}
	want := `# our hook.env
K8S_USERNAME_PREFIX=""

# who may come in
NETWORK_POLICY_ALLOW_CIDR="10.0.0.0/8" # ask the network people
NAMESPACE_PREFIX='user-'
#USE_JOB_POD_REAPER=false
USE_JOB_POD_REAPER=true
OURS=1
CLIENT_ID="kube"
`
	if d := cmp.Diff(want, f.String()); d != "" {
		t.Error(d)
	}
	if again := parseEnv(want); again.String() != want {
		t.Errorf("%q", again.String())
	}
	if f.unedited() || !parseEnv(shipped()).unedited() {
		t.Error("what was edited and what was not can't be told apart")
	}
}

// If a line contains several settings, bash sources all of them, but upstream's hook exports only the first.
func TestSeveralSettingsOnALine(t *testing.T) {
	const cidr = "NETWORK_POLICY_ALLOW_CIDR"
	for _, tc := range []struct{ text, set, at string }{
		{
			text: "CLIENT_ID=x " + cidr + "='10.0.0.0/8'\n",
			at:   "line 1, column 13: " + cidr + " is not the first setting on its line",
			set:  "CLIENT_ID=x\n" + cidr + "='10.0.0.0/8'\n",
		},
		{
			text: "CLIENT_ID=x; " + cidr + "=10.9.0.0/16 # us\n", at: "line 1, column 14: " + cidr + " is not",
			set: "CLIENT_ID=x\n" + cidr + "=\"10.0.0.0/8\" # us\n",
		},
		{text: "export CLIENT_ID=x " + cidr + "=10.9.0.0/16\n", set: "export CLIENT_ID=x " + cidr + "=\"10.0.0.0/8\"\n"},
		{text: "export " + cidr + "=10.9.0.0/16 CLIENT_ID=x\n", set: "export " + cidr + "=\"10.0.0.0/8\" CLIENT_ID=x\n"},
		{text: cidr + "=10.0.0.0/8 CLIENT_ID=x\n", set: cidr + "=10.0.0.0/8 CLIENT_ID=x\n"},
	} {
		f := parseEnv(tc.text)
		said := ""
		if faults := f.lint(); len(faults) > 0 {
			said = faults[0].String()
		}
		if (said == "") != (tc.at == "") || !strings.HasPrefix(said, tc.at) {
			t.Errorf("%s: lint says %q", tc.text, said)
		}
		if got, err := bash(t, bothWays, envOn(t, tc.text), cidr); err != nil || (got != "") != (tc.at == "") {
			t.Errorf("%s: bash: %q, %v", tc.text, got, err)
		}
		if err := f.set(cidr, "10.0.0.0/8"); err != nil || f.String() != tc.set {
			t.Errorf("%s: %v\n%s", tc.text, err, f)
		}
		if got, err := bash(t, bothWays, envOn(t, f.String()), cidr); err != nil || got != cidr+"=10.0.0.0/8" {
			t.Errorf("%s: bash reads %q, %v", f, got, err)
		}
		for key, want := range map[string]string{cidr: "10.0.0.0/8", "CLIENT_ID": "x"} {
			if got, err := parseEnv(f.String()).get(key); err != nil || got != want {
				t.Errorf("%s: read back as %q, %v", f, got, err)
			}
		}
	}
	hidden := redactEnv("CLIENT_ID=x CLIENT_SECRET=s3cret\nCLIENT_ID=x y CLIENT_SECRET=s3cret\n")
	if strings.Contains(hidden, "s3cret") {
		t.Error(hidden)
	}
}

// shipped returns the hook.env of Open OnDemand's package.
func shipped() string {
	var f envFile
	for _, k := range envKeys {
		_ = f.set(k.name, k.ships)
	}
	return f.String()
}
