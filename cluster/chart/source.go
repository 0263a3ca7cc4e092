package chart

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"carrick/cluster/clean"
)

// Source is a source of charts: the URL of a chart repository (https, or http on this machine), an OCI registry
// ("oci://ghcr.io/org/charts"), or a directory or .tgz file on this machine. carrick does not use the repositories,
// credentials and plugins in the user's Helm configuration.
type Source string

// Limits for the data from a source.
const (
	mostIndex = 32 << 20 // size of a repository's index.yaml in bytes
	mostChart = 20 << 20 // size of a packed chart in bytes; Helm allows 100 MiB unpacked
	mostTags  = 20       // pages of an OCI registry's list of tags
)

// Version is one version of a chart in a source.
type Version struct {
	Version, AppVersion string
	Deprecated          bool

	urls   []string // download URLs in a repository's index
	digest string   // sha256 of the packed chart, in hexadecimal; "": unknown
}

// VersionError means that a source does not have the requested version.
type VersionError struct {
	Source  Source
	Name    string
	Version string
	Has     []string // some of the available versions, newest first
}

func (e *VersionError) Error() string {
	if len(e.Has) == 0 {
		return fmt.Sprintf("%s has no chart %q", e.Source, e.Name)
	}
	return fmt.Sprintf("%s has no version %q of chart %s; it has %s", e.Source, e.Version, e.Name, listed(e.Has))
}

// Versions returns the versions of a chart in a source, newest first.
func Versions(ctx context.Context, src Source, name string) ([]Version, error) {
	quiet()
	var found []Version
	var err error
	switch src.kind() {
	case "repository":
		found, err = indexed(ctx, src, name)
	case "oci":
		found, err = tagged(ctx, src, name)
	default:
		c, fault := local(src, name)
		if fault != nil {
			return nil, fault
		}
		found = []Version{{Version: c.Version(), AppVersion: c.AppVersion()}}
	}
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b Version) int { return newer(a.Version, b.Version) })
	return found, nil
}

// Load fetches one version of a chart, verifies the digest that the source gives for it, and unpacks it.
func Load(ctx context.Context, src Source, name, version string) (*Chart, error) {
	quiet()
	if src.kind() == "local" {
		c, err := local(src, name)
		if err == nil && version != "" && !sameVersion(c.Version(), version) {
			err = &VersionError{src, name, version, []string{c.Version()}}
		}
		if err != nil {
			return nil, err
		}
		c.from = src.String()
		return c, nil
	}
	if version == "" {
		return nil, fmt.Errorf(
			"chart %s from %s: no version is set; an exact version is required", name, src,
		)
	}
	var data []byte
	var err error
	if src.kind() == "oci" {
		data, err = pulled(ctx, src, name, version)
	} else {
		data, err = downloaded(ctx, src, name, version)
	}
	if err != nil {
		return nil, err
	}
	c, err := unpacked(data)
	if err != nil {
		return nil, fmt.Errorf("chart %s %s from %s: %w", name, version, src, err)
	}
	if c.Name() != name || !sameVersion(c.Version(), version) {
		return nil, fmt.Errorf(
			"chart %s %s from %s identifies itself as %s %s: do not trust this source", name, version, src, c.Name(),
			c.Version(),
		)
	}
	c.from = fmt.Sprintf("%s, sha256:%x", src, sha256.Sum256(data))
	return c, nil
}

func (s Source) kind() string {
	switch {
	case strings.HasPrefix(string(s), "https://"), strings.HasPrefix(string(s), "http://"):
		return "repository"
	case strings.HasPrefix(string(s), "oci://"):
		return "oci"
	}
	return "local"
}

// String returns the source for display, without a password in its URL.
func (s Source) String() string {
	if u, err := url.Parse(string(s)); err == nil && u.User != nil {
		return u.Redacted()
	}
	return clean.Text(string(s))
}

func local(src Source, name string) (*Chart, error) {
	info, err := os.Stat(string(src))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf(
			"%s is not a chart: no file or directory has this name, and repositories begin with https:// or oci://", src,
		)
	case err != nil:
		return nil, fmt.Errorf("read the chart at %s: %w", src, err)
	}
	var c *Chart
	if info.IsDir() {
		c, err = folder(string(src))
	} else {
		c, err = file(string(src), info.Size())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", src, err)
	}
	if name != "" && c.Name() != name {
		return nil, fmt.Errorf("%s is chart %q, not %q", src, c.Name(), name)
	}
	return c, nil
}

func file(path string, size int64) (*Chart, error) {
	if size > mostChart {
		return nil, fmt.Errorf("it is larger than %d MiB, too large for a chart", mostChart>>20)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return unpacked(data)
}

// newer is a comparison function that sorts versions newest first and invalid versions last.
func newer(a, b string) int {
	x, errX := semver.NewVersion(a)
	y, errY := semver.NewVersion(b)
	switch {
	case errX != nil && errY != nil:
		return strings.Compare(b, a)
	case errX != nil:
		return 1
	case errY != nil:
		return -1
	}
	return y.Compare(x)
}

// sameVersion reports whether two versions are equal. "v1.2.3" equals "1.2.3", as in Helm.
func sameVersion(a, b string) bool {
	return strings.TrimPrefix(a, "v") == strings.TrimPrefix(b, "v")
}

// listed joins the first 12 names and appends the number of the other names.
func listed(names []string) string {
	const most = 12
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
