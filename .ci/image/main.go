// Command image makes an image of a program, without a Dockerfile and without a daemon:
// image [-o FILE] [-push NAME:TAG] [-version V] PROGRAM. One layer holds the program,
// which must need no files beside it; it runs as a user without a name and without
// rights. The same program gives the same image, wherever and whenever it is made.
package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	entry = "carrick" // in the image's root folder
	user  = "65532:65532"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	file := flags.String("o", "", "tarball to write, for docker load and its like")
	push := flags.String("push", "", "name and tag to push to: a registry takes the login of docker or podman")
	version := flags.String("version", "dev", "what the image says of its version")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || (*file == "" && *push == "") {
		return errors.New("usage: image [-o FILE] [-push NAME:TAG] [-version V] PROGRAM")
	}
	img, err := imageOf(flags.Arg(0), *version)
	if err != nil {
		return err
	}
	if *file != "" {
		as, err := name.NewTag(entry + ":" + *version)
		if err == nil {
			err = tarball.WriteToFile(*file, as, img)
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(out, *file)
	}
	if *push == "" {
		return nil
	}
	to, err := name.NewTag(*push, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("name REGISTRY/NAME:TAG in full: %w", err)
	}
	if err := remote.Write(to, img, remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return err
	}
	digest, err := img.Digest()
	if err == nil {
		fmt.Fprintf(out, "%s@%s\n", to.Name(), digest)
	}
	return err
}

// imageOf is an image of one program for Linux.
func imageOf(path, version string) (v1.Image, error) {
	arch, err := static(path)
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return packed(program) }, tarball.WithMediaType(types.OCILayer),
	)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.Append(
		base,
		mutate.Addendum{
			Layer: layer, History: v1.History{CreatedBy: "carrick's .ci/image", Created: v1.Time{Time: time.Unix(0, 0)}},
		},
	)
	if err != nil {
		return nil, err
	}
	c, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Created = "linux", arch, v1.Time{Time: time.Unix(0, 0)}
	c.Config.Entrypoint, c.Config.User, c.Config.WorkingDir = []string{"/" + entry}, user, "/"
	c.Config.Labels = map[string]string{
		"org.opencontainers.image.title": "carrick", "org.opencontainers.image.version": version,
	}
	return mutate.ConfigFile(img, c)
}

// packed is a tarball of the program alone.
func packed(program []byte) (io.ReadCloser, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(
		&tar.Header{Name: entry, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(program)), Format: tar.FormatPAX},
	)
	if err == nil {
		_, err = w.Write(program)
	}
	return io.NopCloser(&b), errors.Join(err, w.Close())
}

// static is the architecture of a program for Linux that needs nothing beside it: what
// is linked to libraries would not start in an image of one file.
func static(path string) (string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("%s is no program for Linux: %w", path, err)
	}
	defer f.Close()
	if libs, err := f.ImportedLibraries(); err != nil || len(libs) > 0 {
		return "", fmt.Errorf("%s needs %v: build it with CGO_ENABLED=0", path, libs)
	}
	arch := map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}[f.Machine]
	if arch == "" {
		return "", fmt.Errorf("%s is for %s", path, f.Machine)
	}
	return arch, nil
}
