package carricktest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh"
	"sigs.k8s.io/yaml"

	"carrick/steps/engine"
	"carrick/steps/facts"
)

// exits CODE PROGRAM ARG... fails unless the program exits with that code. The output must not contain a stack trace or
// an escape sequence.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		ended := (*exec.ExitError)(nil)
		if !errors.As(err, &ended) {
			ts.Fatalf("%v", err)
		}
		code = ended.ExitCode()
	}
	if got := strconv.Itoa(code); got != args[0] {
		ts.Fatalf("exit code %s, not %s", got, args[0])
	}
	for _, end := range []string{"stdout", "stderr"} {
		if bad := Unfit(ts.ReadFile(end)); bad != "" {
			ts.Fatalf("%s contains %s", end, bad)
		}
	}
}

// refuses CODE PROGRAM ARG... is like exits. The program must also write exactly one message to standard error and
// nothing to standard output.
func refuses(ts *testscript.TestScript, neg bool, args []string) {
	exits(ts, neg, args)
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("the command wrote data")
	}
	said := ts.ReadFile("stderr")
	if n := len(regexp.MustCompile(`(?m)^(kubectl )?carrick: `).FindAllString(said, -1)); n != 1 ||
		!strings.HasSuffix(said, "\n") {
		ts.Fatalf("%d messages instead of one", n)
	}
}

// report FORMAT [ID STATUS [FOUND [FIX]]] fails unless the output is one report in that format and the check ID has
// that status. FOUND and FIX are regular expressions for the finding and the fix of the check.
func report(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: report json|yaml [ID STATUS [FOUND [FIX]]]")
	}
	r, err := readReport(args[0], ts.ReadFile("stdout"))
	ts.Check(err)
	if len(args) < 3 {
		return
	}
	for _, c := range r.Checks {
		if c.ID != args[1] {
			continue
		}
		for i, got := range []string{c.Status.String(), c.Found, c.Fix} {
			if i+2 < len(args) && !regexp.MustCompile(args[i+2]).MatchString(got) {
				ts.Fatalf("%s: %q does not match %q", c.ID, got, args[i+2])
			}
		}
		return
	}
	ts.Fatalf("the report has no %s", args[1])
}

func readReport(format, text string) (r engine.Report, err error) {
	if format == "yaml" {
		if json.Valid([]byte(text)) {
			return r, errors.New("the report is JSON")
		}
		err = yaml.UnmarshalStrict([]byte(text), &r)
	} else {
		d := json.NewDecoder(bytes.NewReader([]byte(text)))
		d.DisallowUnknownFields()
		if err = d.Decode(&r); err == nil && d.Decode(&struct{}{}) != io.EOF {
			err = errors.New("more than one document")
		}
	}
	if err == nil && (r.Kind != "CheckReport" || len(r.Checks) == 0) {
		err = errors.New("the document is not a report")
	}
	return r, err
}

// keep NAME stores the standard output in the environment variable NAME.
func keep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: keep NAME")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// Unfit returns a description of content that no output is allowed to have: an escape sequence or a stack trace. It
// returns "" if the output is valid.
func Unfit(output string) string {
	switch {
	case strings.Contains(output, "\x1b"):
		return "an escape sequence"
	case strings.Contains(output, "goroutine "), strings.Contains(output, "panic:"):
		return "a stack trace"
	}
	return ""
}

// forge FILE WHAT changes a facts file and signs it again. It signs with the script's own key, or with a different key
// if WHAT is stranger.
func forge(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: forge FILE WHAT")
	}
	path := ts.MkAbs(args[0])
	key, err := facts.ParseKey([]byte(ts.ReadFile(".config/carrick/signing-key")))
	ts.Check(err)
	f, err := facts.Decode([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
	switch args[1] {
	case "stale":
		f.Taken, f.Until = f.Taken.Add(-48*time.Hour), f.Until.Add(-48*time.Hour)
	case "old":
		f.Taken = f.Taken.Add(-time.Hour)
	case "future":
		f.Taken, f.Until = f.Taken.Add(48*time.Hour), f.Until.Add(48*time.Hour)
	case "open":
		f.Facts["word"] = "sesame-4711-open"
	case "cut seal":
		f.Sealed.Age = f.Sealed.Age[:len(f.Sealed.Age)/2]
	case "bad verdict":
		f.Checks["named"] = facts.Told{Status: "splendid"}
	case "stranger":
		key, _, err = facts.NewKey()
		ts.Check(err)
	case "escape":
		f.Facts["name"] = "rome\x1b]0;owned\x07"
	default:
		ts.Fatalf("unknown forgery %s", args[1])
	}
	data, err := f.Encode(key)
	ts.Check(err)
	ts.Check(os.WriteFile(path, data, 0o600))
}

// signer FILE VARIABLE stores the fingerprint of the key that signed a facts file.
func signer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: signer FILE VARIABLE")
	}
	f, err := facts.Decode([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
	ts.Setenv(args[1], f.Signer)
}

// sshkey KIND NAME writes an SSH private key to NAME. KIND is ed25519, locked (ed25519 with a passphrase) or ecdsa.
func sshKey(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sshkey ed25519|locked|ecdsa NAME")
	}
	_, text, err := facts.NewKey()
	ts.Check(err)
	switch args[0] {
	case "locked":
		private, err := ssh.ParseRawPrivateKey(text)
		ts.Check(err)
		block, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("correct horse"))
		ts.Check(err)
		text = pem.EncodeToMemory(block)
	case "ecdsa":
		curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		ts.Check(err)
		block, err := ssh.MarshalPrivateKey(curve, "")
		ts.Check(err)
		text = pem.EncodeToMemory(block)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), text, 0o600))
}

// agekey NAME writes an age identity to NAME and its recipient to NAME.pub.
func ageKey(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: agekey NAME")
	}
	key, err := age.GenerateX25519Identity()
	ts.Check(err)
	for name, text := range map[string]string{args[0]: key.String(), args[0] + ".pub": key.Recipient().String()} {
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text+"\n"), 0o600))
	}
}
