package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// program is a static one that says what it was given.
func program(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	source, path := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	text := "package main\n\nimport (\"fmt\"; \"os\")\n\nfunc main() { fmt.Println(os.Args[1:]) }\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-trimpath", "-o", path, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// A registry on loopback takes the image, and gives back what runs as nobody with
// rights, and is the program.
func TestPushedAndPulled(t *testing.T) {
	path := program(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	to := strings.TrimPrefix(server.URL, "http://") + "/ml/carrick:v1"
	file := filepath.Join(t.TempDir(), "image.tar")
	var out bytes.Buffer
	if err := run([]string{"-o", file, "-push", to, "-version", "v1", path}, &out); err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(to)
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(pulled); err != nil {
		t.Error(err)
	}
	c, err := pulled.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c.Config.User != "65532:65532" || fmt.Sprint(c.Config.Entrypoint) != "[/carrick]" || c.OS != "linux" ||
		c.Config.Labels["org.opencontainers.image.version"] != "v1" {
		t.Errorf("%+v", c)
	}
	if got := runs(t, pulled); got != "[vsphere-extension --class=nfs-client]" {
		t.Errorf("what is in it says %q", got)
	}
	digest, err := pulled.Digest()
	if err != nil || !strings.Contains(out.String(), to+"@"+digest.String()) {
		t.Errorf("it said %q, and pushed %s (%v)", out.String(), digest, err)
	}
	loaded, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := runs(t, loaded); !strings.Contains(got, "vsphere-extension") {
		t.Errorf("the tarball's says %q", got)
	}
	again, err := imageOf(path, "v1")
	if err != nil {
		t.Fatal(err)
	}
	if other, err := again.Digest(); err != nil || other != digest {
		t.Errorf("made again it is %s, and was %s (%v)", other, digest, err)
	}
}

// runs takes the one file of an image out of it, and runs it.
func runs(t *testing.T, img v1.Image) string {
	t.Helper()
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	text, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	files := tar.NewReader(text)
	h, err := files.Next()
	if err != nil || h.Name != "carrick" || h.Mode != 0o755 || h.Uid != 0 {
		t.Fatalf("%+v, %v", h, err)
	}
	data, err := io.ReadAll(files)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := files.Next(); err != io.EOF {
		t.Errorf("there is more than one file in it: %v", err)
	}
	path := filepath.Join(t.TempDir(), h.Name)
	if err := os.WriteFile(path, data, 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, "vsphere-extension", "--class=nfs-client").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func TestRefused(t *testing.T) {
	path := program(t)
	for says, args := range map[string][]string{
		"usage":                  {path},
		"is no program":          {"-o", filepath.Join(t.TempDir(), "x"), "main.go"},
		"REGISTRY/NAME:TAG":      {"-push", "carrick", path},
		"build it with CGO_ENAB": {"-o", filepath.Join(t.TempDir(), "x"), "/bin/sh"},
	} {
		if err := run(args, io.Discard); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v", args, err)
		}
	}
}
