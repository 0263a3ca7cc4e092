package chart

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"carrick/cluster/clean"
)

const fetchWithin = 60 * time.Second

// index contains the fields of a repository's index.yaml that carrick reads (helm.sh/helm/v4/pkg/repo/v1/index.go).
type index struct {
	Entries map[string][]struct {
		Version    string   `json:"version"`
		AppVersion string   `json:"appVersion"`
		Deprecated bool     `json:"deprecated"`
		URLs       []string `json:"urls"`
		Digest     string   `json:"digest"`
	} `json:"entries"`
}

// indexed returns the versions of a chart in a repository's index.
func indexed(ctx context.Context, src Source, name string) ([]Version, error) {
	at, err := within(string(src), "index.yaml")
	if err != nil {
		return nil, fmt.Errorf("chart repository %s: %w", src, err)
	}
	data, err := get(ctx, at, mostIndex)
	if err != nil {
		return nil, fmt.Errorf("chart repository %s: %w", src, err)
	}
	var i index
	if err := yaml.Unmarshal(data, &i); err != nil || i.Entries == nil {
		return nil, fmt.Errorf("chart repository %s: its index.yaml is not a repository index", src)
	}
	entries := i.Entries[name]
	if len(entries) == 0 {
		var names []string
		for n := range i.Entries {
			names = append(names, clean.Text(n))
		}
		return nil, fmt.Errorf("chart repository %s has no chart %q; it has %s", src, name, listed(sorted(names)))
	}
	out := make([]Version, 0, len(entries))
	for _, e := range entries {
		out = append(out, Version{
			Version: clean.Text(e.Version), AppVersion: clean.Text(e.AppVersion), Deprecated: e.Deprecated,
			urls: e.URLs, digest: strings.ToLower(strings.TrimPrefix(e.Digest, "sha256:")),
		})
	}
	return out, nil
}

// downloaded downloads a packed chart from a repository and verifies its digest.
func downloaded(ctx context.Context, src Source, name, version string) ([]byte, error) {
	all, err := Versions(ctx, src, name)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, v := range all {
		names = append(names, v.Version)
		if !sameVersion(v.Version, version) {
			continue
		}
		if len(v.urls) == 0 {
			return nil, fmt.Errorf("chart repository %s has no URL for chart %s %s", src, name, version)
		}
		at, err := within(string(src), v.urls[0])
		if err != nil {
			return nil, fmt.Errorf("chart %s %s of %s: %w", name, version, src, err)
		}
		data, err := get(ctx, at, mostChart)
		if err != nil {
			return nil, fmt.Errorf("chart %s %s of %s: %w", name, version, src, err)
		}
		sum := sha256.Sum256(data)
		if got := hex.EncodeToString(sum[:]); v.digest != "" && v.digest != got {
			return nil, fmt.Errorf(
				"chart %s %s of %s does not have the checksum of its index (%.12s, not %.12s): it was changed or truncated",
				name, version, src, got, v.digest,
			)
		}
		return data, nil
	}
	return nil, &VersionError{src, name, version, names}
}

// within resolves ref relative to base, the URL of a repository. The result must use https, because a chart can create
// any object in the cluster. Only a server on this machine can use http.
func within(base, ref string) (*url.URL, error) {
	b, err := url.Parse(strings.TrimSuffix(base, "/") + "/")
	if err != nil || b.Host == "" {
		return nil, errors.New("its URL cannot be parsed")
	}
	r, err := url.Parse(ref)
	if err != nil {
		return nil, fmt.Errorf("it contains a URL that cannot be parsed: %q", clean.Text(ref))
	}
	at := b.ResolveReference(r)
	if !safe(at) || b.Scheme == "https" && at.Scheme != "https" {
		return nil, fmt.Errorf(
			"%s is not https, so the chart could be changed in transit. Or use a directory or a .tgz file on this machine",
			at.Redacted(),
		)
	}
	return at, nil
}

// safe reports whether a URL is protected against tampering in transit: it uses https, or http on this machine.
func safe(at *url.URL) bool {
	ip := net.ParseIP(at.Hostname())
	return at.Scheme == "https" || at.Scheme == "http" && (at.Hostname() == "localhost" || ip.IsLoopback())
}

// get downloads a document. most is its maximum size in bytes.
func get(ctx context.Context, at *url.URL, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "carrick")
	client := &http.Client{CheckRedirect: func(next *http.Request, via []*http.Request) error {
		switch {
		case len(via) >= 10:
			return errors.New("it redirects in a loop")
		case !safe(next.URL) || via[0].URL.Scheme == "https" && next.URL.Scheme != "https":
			return fmt.Errorf("it redirects to %s, which is not https", next.URL.Redacted())
		}
		return nil
	}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("it cannot be reached: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", at.Redacted(), clean.Text(resp.Status))
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: the answer was truncated: %w", at.Redacted(), err)
	case int64(len(data)) > most:
		return nil, fmt.Errorf("%s is larger than %d MiB", at.Redacted(), most>>20)
	}
	return data, nil
}
