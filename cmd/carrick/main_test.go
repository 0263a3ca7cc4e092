package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"carrick/cluster/clustertest"
	"carrick/cmd/carrick/completion"
	"carrick/cmd/carrick/demo"
)

// TestMain makes carrick a command of the scripts and of the other tests: this
// test binary, under that name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == demo.Program {
		lentMain()
		return
	}
	testscript.Main(tidy{m}, map[string]func(){
		"carrick": main, "kubectl-carrick": main, completion.As: main,
		"carrick-toy": toyMain, "carrick-trial": trialMain, "carrick-codes": codesMain, "carrick-duo": duoMain,
	})
}

// tidy removes what the tests of one binary share.
type tidy struct{ *testing.M }

func (t tidy) Run() int {
	defer func() { _ = os.RemoveAll(built.dir) }()
	return t.M.Run()
}

// carrick is the command, in a folder of its own, with nothing of the user's
// settings.
func carrick(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "carrick", args...)
	cmd.Dir = t.TempDir()
	cmd.Env = ownEnvironment(cmd.Dir)
	return cmd
}

// ownEnvironment is all that a carrick of the tests is told. Whatever it keeps
// goes into dir.
func ownEnvironment(dir string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "LANG=en_US.UTF-8",
		"HOME=" + dir, "XDG_STATE_HOME=" + filepath.Join(dir, "state"),
	}
}

// built is carrick as users have it, with the sandbox program beside it.
var built struct {
	once sync.Once
	dir  string
	err  error
	said []byte
}

// programAt is the environment variable that holds the path of carrick, which has carrick-sandbox beside it.
const programAt = "CARRICK_PROGRAM"

// program returns the path of carrick: the one that CARRICK_PROGRAM names, or else one that the first caller
// builds. Unlike the command of the scripts it is no test binary, and it finds carrick-sandbox beside itself where
// CARRICK_SANDBOX is set.
func programPath(t testing.TB) string {
	t.Helper()
	if path := os.Getenv(programAt); path != "" {
		return path
	}
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "carrick-built-*"); built.err != nil {
			return
		}
		if box := os.Getenv(clustertest.Program); box != "" {
			if built.err = os.Symlink(box, filepath.Join(built.dir, demo.Program)); built.err != nil {
				return
			}
		}
		built.said, built.err = exec.Command("go", "build", "-o", filepath.Join(built.dir, "carrick"), ".").CombinedOutput()
	})
	if built.err != nil {
		t.Fatalf("build carrick: %v\n%s", built.err, built.said)
	}
	return filepath.Join(built.dir, "carrick")
}

// finish runs a command to its end.
func finish(t testing.TB, cmd *exec.Cmd) (out, said string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	ended := (*exec.ExitError)(nil)
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// login is a way into an API server.
type login struct {
	server, user string
	ca           *x509.Certificate // of the server; nil: none
}

// write writes link.yaml, with that API server on both sides, and its
// kubeconfig.
func (l login) write(t *testing.T, dir string) {
	t.Helper()
	cluster := fmt.Sprintf("server: %q", l.server)
	if l.ca != nil {
		file := filepath.Join(dir, "ca.crt")
		writePEM(t, file, "CERTIFICATE", l.ca.Raw)
		cluster += fmt.Sprintf(", certificate-authority: %q", file)
	}
	config := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {%s}}]
users: [{name: u, user: {%s}}]
contexts: [{name: left, context: {cluster: c, user: u}}, {name: right, context: {cluster: c, user: u}}]
`, cluster, l.user)
	const link = `apiVersion: carrick/v1alpha1
kind: Link
metadata: {name: a}
guide: renku
local: {context: left, kubeconfig: config}
remote: {context: right, kubeconfig: config}
`
	for name, text := range map[string]string{"config": config, "link.yaml": link} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func writePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
