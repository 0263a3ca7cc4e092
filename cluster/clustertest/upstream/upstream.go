// Package upstream runs the real programs of other projects on the control planes of a sandbox, instead of fakes. It
// builds these programs from checkouts. make upstream sets CARRICK_UPSTREAM to the directory with the checkouts. A test
// whose checkout does not exist is skipped.
package upstream

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

const (
	// Folder is the environment variable that contains the directory of the checkouts.
	Folder = "CARRICK_UPSTREAM"
	// Table is the environment variable that contains the path of a file. Try appends a line to this file for each
	// attempt.
	Table = "CARRICK_UPSTREAM_TABLE"
)

// environ is the environment with which the test binary started. go build runs with it, because tests can change
// variables such as those for trusted CAs.
var environ = os.Environ()

// Checkout is a cloned project.
type Checkout struct {
	Name    string
	Dir     string
	Version string // output of git describe: "v1.2.0", "v1.2.0-31-g557c199"
}

// Find returns the checkout of a project. If it does not exist, Find skips the test.
func Find(t testing.TB, name string) Checkout {
	t.Helper()
	folder := os.Getenv(Folder)
	if folder == "" {
		t.Skipf("%s is not set; set it to a directory with checkouts of other projects (make upstream)", Folder)
	}
	dir, err := filepath.Abs(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("%s has no checkout of %s", Folder, name)
	}
	version, err := exec.Command("git", "-C", dir, "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		t.Fatalf("git describe of %s: %v", dir, err)
	}
	return Checkout{name, dir, strings.TrimSpace(string(version))}
}

// Build builds packages of a Go project and returns the directory with the binaries.
func (c Checkout) Build(t testing.TB, packages ...string) string {
	t.Helper()
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", append([]string{"build", "-o", bin + "/"}, packages...)...)
	build.Dir, build.Env = c.Dir, environ
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s of %s %s: %v\n%s", strings.Join(packages, ", "), c.Name, c.Version, err, out)
	}
	return bin
}

// Probe builds a main package from source within a Go project, next to the project's own programs, and returns the path
// of the binary. more maps paths to files that are added to the project, such as files that export unexported names.
// Probe uses a build overlay and does not change the checkout.
func (c Checkout) Probe(t testing.TB, source string, more map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	over, files := map[string]string{}, map[string]string{"cmd/carrick-probe/main.go": source}
	maps.Copy(files, more)
	for path, text := range files {
		at := filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		over[filepath.Join(c.Dir, filepath.FromSlash(path))] = at
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": over})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"),
		"-o", filepath.Join(dir, "probe"), "./cmd/carrick-probe")
	build.Dir, build.Env = c.Dir, environ
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build a program with %s %s: %v\n%s", c.Name, c.Version, err, out)
	}
	return filepath.Join(dir, "probe")
}

// Try runs a test as a subtest and appends a line with its result to the table.
func (c Checkout) Try(t *testing.T, what string, try func(t *testing.T)) {
	t.Helper()
	t.Run(what, func(t *testing.T) {
		t.Cleanup(func() {
			held := "held"
			if t.Failed() {
				held = "DID NOT HOLD"
			}
			if err := note(fmt.Sprintf("%-16s %-22s %-66s %s\n", c.Name, c.Version, what, held)); err != nil {
				t.Error(err)
			}
		})
		try(t)
	})
}

func note(line string) error {
	path := os.Getenv(Table)
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(line)
	return err
}

var latest = regexp.MustCompile(`tag: "?latest"?`)

// Chart copies a chart from the checkout into the directory charts, and returns the chart's version. version is the
// version that chartpress would set for the chart and its images when it publishes them; "" keeps the chart's own
// version. The dependencies of the chart come from the directory charts, whatever their version.
func (c Checkout) Chart(t testing.TB, at, charts, version string) string {
	t.Helper()
	from := filepath.Join(c.Dir, filepath.FromSlash(at))
	made, err := loader.LoadDir(from)
	if err != nil {
		t.Fatalf("chart %s of %s %s: %v", at, c.Name, c.Version, err)
	}
	if version != "" {
		made.Metadata.Version = version
		for _, f := range made.Raw {
			if f.Name == chartutil.ValuesfileName {
				f.Data = latest.ReplaceAll(f.Data, []byte("tag: "+version))
			}
		}
	}
	for _, needs := range made.Metadata.Dependencies {
		part, err := loader.LoadDir(filepath.Join(charts, needs.Name))
		if err != nil {
			t.Fatalf("chart %s depends on %s: %v", made.Name(), needs.Name, err)
		}
		needs.Version = part.Metadata.Version
		made.AddDependency(part)
	}
	if err := chartutil.SaveDir(made, charts); err != nil {
		t.Fatal(err)
	}
	return made.Metadata.Version
}
