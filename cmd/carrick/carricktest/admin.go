package carricktest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"filippo.io/age"

	"carrick/steps/engine"
	"carrick/steps/facts"
)

// Admin is one of two admins who share nothing. Each has a directory with a kubeconfig for one cluster, a link file and
// an age key.
type Admin struct {
	*testing.T
	Dir, Role, peer string
	env             []string
	key             *age.X25519Identity
	Command         string          // path of the carrick binary; "" means the result of Program
	peerKey         string          // key that signed the peer's facts file; the first apply confirms it with --signer
	confirmed       bool            // an apply has already been given --signer
	Said            strings.Builder // all output so far
}

// NewAdmin returns an admin whose link file contains ends and answers. If kubeconfig is "", the admin has no
// kubeconfig.
func NewAdmin(t *testing.T, guide, role, peer, ends, answers, kubeconfig string) *Admin {
	t.Helper()
	o := &Admin{T: t, Dir: t.TempDir(), Role: role, peer: peer}
	var err error
	if o.key, err = age.GenerateX25519Identity(); err != nil {
		t.Fatal(err)
	}
	o.Write("key", o.key.String()+"\n")
	o.Write(
		"link.yaml", "apiVersion: carrick/v1alpha1\nkind: Link\nmetadata: {name: apart}\nguide: "+guide+"\n"+ends+answers,
	)
	o.env = append(OwnEnvironment(o.Dir), "KUBECONFIG="+filepath.Join(o.Dir, "config"))
	if kubeconfig != "" {
		text, err := os.ReadFile(kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		o.Write("config", string(text))
	}
	return o
}

// Write writes text to the named file in the admin's directory.
func (o *Admin) Write(name, text string) {
	o.Helper()
	if err := os.WriteFile(filepath.Join(o.Dir, name), []byte(text), 0o600); err != nil {
		o.Fatal(err)
	}
}

// Read returns the content of the named file in the admin's directory.
func (o *Admin) Read(name string) string {
	o.Helper()
	text, err := os.ReadFile(filepath.Join(o.Dir, name))
	if err != nil {
		o.Fatal(err)
	}
	return string(text)
}

// Run runs carrick with the admin's key in the admin's directory. The test fails if the exit code is not in codes. The
// first apply also confirms the key that signed the peer's file.
func (o *Admin) Run(codes []int, args ...string) (out, said string, code int) {
	o.Helper()
	if args[0] == "apply" && o.peerKey != "" && !o.confirmed {
		args = append(args, "--signer", o.peerKey)
		o.confirmed = true
	}
	return o.Alone(codes, append(args, "--identity", "key")...)
}

// Alone is like Run, but carrick does not get the admin's key.
func (o *Admin) Alone(codes []int, args ...string) (out, said string, code int) {
	o.Helper()
	command := o.Command
	if command == "" {
		command = Program(o)
	}
	cmd := exec.CommandContext(o.Context(), command, args...)
	cmd.Dir, cmd.Env = o.Dir, o.env
	out, said, code = Finish(o, cmd)
	o.Said.WriteString(out + said)
	o.Logf("%s: carrick %s: exit code %d\n%s%s", o.Role, strings.Join(args, " "), code, out, said)
	for _, c := range codes {
		if c == code {
			return out, said, code
		}
	}
	o.Fatalf("%s: carrick %s: exit code %d, want one of %v", o.Role, strings.Join(args, " "), code, codes)
	return out, said, code
}

// Hand writes this side's facts file and copies it to the other admin's directory.
func (o *Admin) Hand(to *Admin) string {
	o.Helper()
	o.Run([]int{0}, "handover", "link.yaml", "--side", o.Role, "-o", "ours.facts", "--to", to.key.Recipient().String())
	text := o.Read("ours.facts")
	to.Write("theirs.facts", text)
	f, err := facts.Decode([]byte(text))
	if err != nil {
		o.Fatal(err)
	}
	to.peerKey = f.Signer
	return text
}

// TakeTurns runs apply and handover alternately for both admins until all checks pass on both sides. It returns all
// facts files that the admins exchanged. The test fails after the given maximum number of rounds.
func TakeTurns(local, remote *Admin, most int) (handed []string) {
	local.Helper()
	// remote has no facts file of local yet, so its first handover runs without one.
	with := remote.Read("link.yaml")
	remote.Write("link.yaml", strings.Replace(with, "local: {facts: theirs.facts}\n", "", 1))
	handed = append(handed, remote.Hand(local))
	remote.Write("link.yaml", with)
	for turn := range most {
		for _, o := range []*Admin{local, remote} {
			to := map[*Admin]*Admin{local: remote, remote: local}[o]
			o.Run([]int{0, 5}, "apply", "--yes", "link.yaml", "--side", o.Role)
			handed = append(handed, o.Hand(to))
		}
		_, _, ours := local.Run([]int{0, 3, 5}, "check", "link.yaml")
		_, _, theirs := remote.Run([]int{0, 3, 5}, "check", "link.yaml")
		if ours == 0 && theirs == 0 {
			local.Logf("green after %d turns", turn+1)
			return handed
		}
	}
	local.Fatalf("not green after %d turns", most)
	return nil
}

// WithoutFacts matches the line of a link file that declares a side as a facts file.
var WithoutFacts = regexp.MustCompile(`(?m)^(local|remote): \{facts: .*\n`)

// ReadAt returns the content of the file at path.
func (o *Admin) ReadAt(path string) string {
	o.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		o.Fatal(err)
	}
	return string(text)
}

// Reported runs carrick check -o json and returns its verdicts by "check@side".
func (o *Admin) Reported(codes []int, args ...string) map[string]engine.ReportCheck {
	o.Helper()
	said, _, _ := o.Run(codes, append(append([]string{"check"}, args...), "-o", "json")...)
	var r engine.Report
	if err := json.Unmarshal([]byte(said), &r); err != nil {
		o.Fatal(err)
	}
	out := map[string]engine.ReportCheck{}
	for _, c := range r.Checks {
		out[c.Check+"@"+string(c.Side)] = c
	}
	return out
}
