package chart

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"slices"
	"strings"
	"sync"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"carrick/cluster/clean"
)

// quiet discards the output of Go's standard logger. Helm's packages write to it and have no option for another logger.
// By default it writes to stderr, which the terminal UI might be using.
var quiet = sync.OnceFunc(func() { log.SetOutput(io.Discard) })

// Chart is a loaded chart. It is safe for concurrent use. Rendering removes disabled subcharts, so each rendering uses
// a copy.
type Chart struct {
	files []*archive.BufferedFile
	meta  *chartv2.Metadata
	from  string
}

// From returns the source of the chart. For a download, it also returns the checksum, which equals the digest in a
// repository's index.
func (c *Chart) From() string { return c.from }

// Name returns the chart's own name.
func (c *Chart) Name() string { return clean.Text(c.meta.Name) }

// Version returns the chart's version.
func (c *Chart) Version() string { return clean.Text(c.meta.Version) }

// AppVersion returns the version of the application that the chart installs.
func (c *Chart) AppVersion() string { return clean.Text(c.meta.AppVersion) }

// Digest returns a hash of the chart's content: 64 hexadecimal digits.
func (c *Chart) Digest() string {
	h := sha256.New()
	for _, f := range c.files {
		_, _ = fmt.Fprintf(h, "%d %s %d ", len(f.Name), f.Name, len(f.Data))
		_, _ = h.Write(f.Data)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Dependencies returns the subcharts that the chart declares.
func (c *Chart) Dependencies() []Dependency {
	var out []Dependency
	for _, d := range c.meta.Dependencies {
		out = append(out, Dependency{
			Name: clean.Text(d.Name), Version: clean.Text(d.Version), Repository: clean.Text(d.Repository),
			Condition: clean.Text(d.Condition), Alias: clean.Text(d.Alias),
		})
	}
	return out
}

func unpacked(data []byte) (*Chart, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return nil, errors.New("it is not a chart: a packaged chart is a .tgz file")
	}
	files, err := archive.LoadArchiveFiles(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("it is not a chart, or is damaged: %w", err)
	}
	return checked(files)
}

func folder(path string) (*Chart, error) {
	c, err := loader.LoadDir(path)
	if err != nil {
		return nil, fmt.Errorf("it is not a chart, or is damaged: %w", err)
	}
	var files []*archive.BufferedFile
	for _, f := range c.Raw {
		files = append(files, &archive.BufferedFile{Name: f.Name, ModTime: f.ModTime, Data: f.Data})
	}
	return checked(files)
}

// checked returns the chart in files. It returns an error if the files are not a chart or if a subchart is missing.
func checked(files []*archive.BufferedFile) (*Chart, error) {
	slices.SortStableFunc(files, func(a, b *archive.BufferedFile) int { return strings.Compare(a.Name, b.Name) })
	c := &Chart{files: files}
	inner, err := c.open()
	if err != nil {
		return nil, fmt.Errorf("it is not a chart, or is damaged: %w", err)
	}
	c.meta = inner.Metadata
	if c.meta.Type == "library" {
		return nil, errors.New("it is a library chart, which cannot be installed")
	}
	var missing []string
	for _, d := range c.meta.Dependencies {
		if !slices.ContainsFunc(inner.Dependencies(), func(sub *chartv2.Chart) bool { return sub.Name() == d.Name }) {
			missing = append(missing, clean.Text(d.Name))
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("its subcharts are missing: %s; run helm dependency build in its directory", listed(missing))
	}
	return c, nil
}

// open returns the chart as Helm's type. Each call returns a new copy.
func (c *Chart) open() (*chartv2.Chart, error) { return loader.LoadFiles(c.files) }

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}
