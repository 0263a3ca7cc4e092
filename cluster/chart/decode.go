package chart

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	release "helm.sh/helm/v4/pkg/release/v1"

	"carrick/cluster/clean"
)

// mostDecoded is the maximum size of an unpacked release. A packed release is at most 1 MiB, the limit of a Secret, but
// can unpack to a thousand times that size.
const mostDecoded = 64 << 20

var errTooLarge = fmt.Errorf("it is larger than %d MiB when unpacked", mostDecoded>>20)

// stored contains the fields of a stored release that carrick reads (helm.sh/helm/v4/pkg/release/v1/release.go).
type stored struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Version   int    `json:"version"`
	Manifest  string `json:"manifest"`
	How       string `json:"apply_method"`
	Info      struct {
		Status       string    `json:"status"`
		Description  string    `json:"description"`
		Notes        string    `json:"notes"`
		LastDeployed time.Time `json:"last_deployed"`
	} `json:"info"`
	Hooks []*release.Hook `json:"hooks"`
	Chart struct {
		Metadata struct {
			Name         string `json:"name"`
			Version      string `json:"version"`
			AppVersion   string `json:"appVersion"`
			Dependencies []struct {
				Name       string `json:"name"`
				Version    string `json:"version"`
				Repository string `json:"repository"`
				Condition  string `json:"condition"`
				Alias      string `json:"alias"`
			} `json:"dependencies"`
		} `json:"metadata"`
		Values map[string]any `json:"values"`
		Files  []struct {
			Name string `json:"name"`
			Data []byte `json:"data"`
		} `json:"files"`
	} `json:"chart"`
	Config map[string]any `json:"config"`
}

// helmWord matches the release names, chart names and chart versions (SemVer) that Helm accepts (helm.sh/helm/v4:
// pkg/chart/v2/util/create.go and validate_name.go).
var helmWord = regexp.MustCompile(`^[A-Za-z0-9._+-]*$`)

// decode decodes a release in Helm's format, which is base64-encoded JSON, usually compressed with gzip. Its errors
// contain no part of the release.
func decode(data string) (*Release, error) {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return nil, errors.New("it is not base64")
	}
	if raw, err = unpack(raw); err != nil {
		return nil, err
	}
	var s stored
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, errors.New("it is not a release: its JSON is invalid")
	}
	if s.Name == "" || s.Chart.Metadata.Name == "" {
		return nil, errors.New("it is not a release: it has no release name or no chart")
	}
	m := s.Chart.Metadata
	for _, word := range []string{s.Name, m.Name, m.Version} { // these strings appear in printed commands
		if !helmWord.MatchString(word) {
			return nil, errors.New("it is not a release: its name or version is invalid in Helm")
		}
	}
	r := &Release{
		Name: clean.Text(s.Name), Namespace: clean.Text(s.Namespace), Revision: s.Version,
		Chart: clean.Text(m.Name), Version: clean.Text(m.Version), AppVersion: clean.Text(m.AppVersion),
		Status: clean.Text(s.Info.Status), Description: clean.Text(s.Info.Description),
		Notes: clean.Text(s.Info.Notes), Changed: s.Info.LastDeployed,
		inner: &inner{given: s.Config, defaults: s.Chart.Values, manifest: s.Manifest, how: s.How, hooks: s.Hooks},
	}
	for _, f := range s.Chart.Files {
		if strings.HasPrefix(f.Name, "crds/") && (strings.HasSuffix(f.Name, ".yaml") || strings.HasSuffix(f.Name, ".yml") ||
			strings.HasSuffix(f.Name, ".json")) {
			r.inner.crds = append(r.inner.crds, string(f.Data))
		}
	}
	for _, d := range m.Dependencies {
		r.Dependencies = append(r.Dependencies, Dependency{
			Name: clean.Text(d.Name), Version: clean.Text(d.Version), Repository: clean.Text(d.Repository),
			Condition: clean.Text(d.Condition), Alias: clean.Text(d.Alias),
		})
	}
	return r, nil
}

// decodeOf decodes the release in a Secret. It returns an error if the Secret's name belongs to another release or
// revision. Otherwise anyone who can write the Secret could replace one release with another.
func decodeOf(secret, data string) (*Release, error) {
	r, err := decode(data)
	if err == nil && secretName(r.Name, r.Revision) != secret {
		return nil, errors.New("its content belongs to another release or revision")
	}
	return r, err
}

// unpack decompresses gzip data. It returns other data unchanged, because the first versions of Helm 3 did not compress
// releases.
func unpack(raw []byte) ([]byte, error) {
	if !bytes.HasPrefix(raw, []byte{0x1f, 0x8b, 0x08}) {
		return raw, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, errors.New("it cannot be unpacked: its gzip header is invalid")
	}
	out, err := io.ReadAll(io.LimitReader(z, mostDecoded+1))
	switch {
	case err != nil:
		return nil, errors.New("it cannot be unpacked: its gzip data is truncated or invalid")
	case len(out) > mostDecoded:
		return nil, errTooLarge
	}
	return out, nil
}
