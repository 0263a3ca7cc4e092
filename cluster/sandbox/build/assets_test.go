package build

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// programs creates a folder of programs that print a version as Kubernetes' programs do.
func programs(t *testing.T, folder, version string) string {
	t.Helper()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{
		"etcd": "etcd Version: 3.7.0", "kube-apiserver": "Kubernetes " + version,
		"kubectl": "Client Version: " + version + "\nKustomize Version: v5.8.1",
	} {
		script := fmt.Sprintf("#!/bin/sh\ncat <<END\n%s\nEND\n", says)
		if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// chosen returns the output of the script for a sandbox of v1.37.2.
func chosen(t *testing.T, env ...string) string {
	t.Helper()
	cmd := exec.Command("./assets.sh", "v1.37.2")
	cmd.Env = append(os.Environ(), "KUBEBUILDER_ASSETS=", "XDG_DATA_HOME=")
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func TestAssetsThatFitAreChosen(t *testing.T) {
	for version, fits := range map[string]bool{
		"v1.37.2": true, "v1.37.0": true, "v1.38.1": true, "v1.36.9": false, "v1.39.0": false, "v1.3.7": false,
	} {
		t.Run(version, func(t *testing.T) {
			folder := programs(t, filepath.Join(t.TempDir(), "with space"), version)
			want := ""
			if fits {
				want = folder
			}
			if got := chosen(t, "KUBEBUILDER_ASSETS="+folder); got != want {
				t.Errorf("chosen: %q", got)
			}
		})
	}
}

func TestAssetsThatDoNotRunAreNotChosen(t *testing.T) {
	folder := programs(t, t.TempDir(), "v1.37.2")
	if err := os.WriteFile(filepath.Join(folder, "etcd"), []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := chosen(t, "KUBEBUILDER_ASSETS="+folder); got != "" {
		t.Errorf("chosen: %q", got)
	}
	if err := os.Remove(filepath.Join(folder, "etcd")); err != nil {
		t.Fatal(err)
	}
	if got := chosen(t, "KUBEBUILDER_ASSETS="+folder); got != "" {
		t.Errorf("chosen: %q", got)
	}
	if got := chosen(t, "KUBEBUILDER_ASSETS=/nonexistent"); got != "" {
		t.Errorf("chosen: %q", got)
	}
}

func TestAssetsOfSetupEnvtestAreFound(t *testing.T) {
	home := t.TempDir()
	store := filepath.Join(home, ".local/share/kubebuilder-envtest/k8s")
	if runtime.GOOS == "darwin" {
		store = filepath.Join(home, "Library/Application Support/io.kubebuilder.envtest/k8s")
	}
	platform := "-" + runtime.GOOS + "-" + runtime.GOARCH
	if got := chosen(t, "HOME="+home); got != "" {
		t.Errorf("chosen where there are none: %q", got)
	}
	for _, version := range []string{"1.36.4", "1.38.0", "1.37.9", "1.37.10"} {
		programs(t, filepath.Join(store, version+platform), "v"+version)
	}
	programs(t, filepath.Join(store, "1.37.11-plan9-mips"), "v1.37.11")
	if got := chosen(t, "HOME="+home); got != filepath.Join(store, "1.37.10"+platform) {
		t.Errorf("chosen: %q", got)
	}
	if err := os.RemoveAll(filepath.Join(store, "1.37.10"+platform, "kubectl")); err != nil {
		t.Fatal(err)
	}
	if got := chosen(t, "HOME="+home); got != filepath.Join(store, "1.37.9"+platform) {
		t.Errorf("chosen: %q", got)
	}
	mine := programs(t, t.TempDir(), "v1.37.0")
	if got := chosen(t, "HOME="+home, "KUBEBUILDER_ASSETS="+mine); got != mine {
		t.Errorf("chosen: %q", got)
	}
}
