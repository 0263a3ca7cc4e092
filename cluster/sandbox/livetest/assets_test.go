package livetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// assets returns a command that starts a sandbox with a folder of the user's own programs. The folder contains one
// program, a shell script.
func assets(t *testing.T, name, script string) (cmd *exec.Cmd, dir string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "s")
	cmd = exec.Command(program, "--empty", "--dir", dir)
	cmd.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+folder)
	return cmd, dir
}

func TestAssetsOfTheUserAreUsed(t *testing.T) {
	names := t.TempDir()
	if err := os.Symlink(program, filepath.Join(names, "etcd")); err != nil {
		t.Fatal(err)
	}
	used := filepath.Join(names, "used")
	// Not exec: the server is then a grandchild, which has to end as well.
	cmd, dir := assets(t, "etcd", "touch "+used+"\nunset KUBEBUILDER_ASSETS CARRICK_SANDBOX_DIR\n"+names+"/etcd \"$@\"\n")
	s, err := start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(used); err != nil {
		t.Errorf("the user's etcd was not started: %v", err)
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	noneLeft(t, dir)
}

func TestFailedStartSaysWhyAndLeavesNothing(t *testing.T) {
	cmd, dir := assets(t, "kube-apiserver", "test \"$1\" = --help && exit\necho the dog ate it >&2\nexit 3\n")
	s, err := begin(cmd)
	if err != nil {
		t.Fatal(err)
	}
	for line := range s.lines {
		t.Errorf("standard output: %s", line)
	}
	if err := s.cmd.Wait(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("exit: %v", err)
	}
	out := s.progress.String()
	if !strings.Contains(out, "kube-apiserver of") || !strings.Contains(out, "the dog ate it") {
		t.Errorf("standard error:\n%s", out)
	}
	noneLeft(t, dir)
}

func TestSandboxThatIsBuiltForAssets(t *testing.T) {
	folder, slim := t.TempDir(), filepath.Join(t.TempDir(), "carrick-sandbox")
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if err := os.Symlink(program, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("make", "-C", "..", "OUT="+slim, "SANDBOX_ASSETS="+folder)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	t.Setenv("KUBEBUILDER_ASSETS", "")
	s, err := start(exec.Command(slim, "--empty"))
	if err != nil {
		t.Fatal(err)
	}
	if path, err := os.Readlink(s.Kubectl); err != nil || path != filepath.Join(folder, "kubectl") {
		t.Errorf("kubectl is %s: %v", path, err)
	}
	if out, err := exec.Command(
		s.Kubectl, "--kubeconfig", s.Kubeconfigs["local"], "get", "namespaces",
	).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}

	if err := os.Remove(filepath.Join(folder, "etcd")); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(slim, "--empty").CombinedOutput()
	want := "carrick-sandbox: find etcd: the binary is not in " + folder +
		", and this carrick-sandbox does not include it; run make sandbox\n"
	if err == nil || string(out) != want {
		t.Errorf("%v\n%s", err, out)
	}
}
