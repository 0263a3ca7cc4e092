package chart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"carrick/cluster/clean"
)

// chartLayer is the media type of the OCI layer with the packed chart (helm.sh/helm/v4/pkg/registry/constants.go).
const chartLayer = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// repository returns a chart's repository in an OCI registry. Access is anonymous: carrick sends no credentials.
func repository(src Source, name string) (*remote.Repository, error) {
	at := strings.TrimSuffix(strings.TrimPrefix(string(src), "oci://"), "/") + "/" + name
	r, err := remote.NewRepository(at)
	if err != nil {
		return nil, fmt.Errorf("registry %s: %q is not a repository name", src, clean.Text(at))
	}
	host, _, _ := strings.Cut(r.Reference.Registry, ":")
	r.PlainHTTP = host == "localhost" || host == "127.0.0.1" // as docker and Helm do
	r.TagListMaxPages = mostTags
	r.Client = &auth.Client{Client: &http.Client{}, Header: http.Header{"User-Agent": {"carrick"}}}
	return r, nil
}

// tagged returns the versions of a chart in an OCI registry. It reads them from the tags, in which _ replaces the + of
// a version.
func tagged(ctx context.Context, src Source, name string) ([]Version, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchWithin)
	defer cancel()
	r, err := repository(src, name)
	if err != nil {
		return nil, err
	}
	var out []Version
	err = r.Tags(ctx, "", func(tags []string) error {
		for _, t := range tags {
			out = append(out, Version{Version: strings.ReplaceAll(clean.Text(t), "_", "+")})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("chart %s in registry %s: %w", name, src, registryError(err))
	}
	return out, nil
}

// pulled downloads a packed chart from an OCI registry and verifies its digest.
func pulled(ctx context.Context, src Source, name, version string) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, fetchWithin)
	defer cancel()
	r, err := repository(src, name)
	if err != nil {
		return nil, err
	}
	at, err := r.Resolve(limited, strings.ReplaceAll(version, "+", "_"))
	if errors.Is(err, errdef.ErrNotFound) {
		e := &VersionError{Source: src, Name: name, Version: version}
		if has, err := Versions(ctx, src, name); err == nil {
			for _, v := range has {
				e.Has = append(e.Has, v.Version)
			}
		}
		return nil, e
	}
	if err != nil {
		return nil, fmt.Errorf("chart %s %s in registry %s: %w", name, version, src, registryError(err))
	}
	data, err := layer(limited, r, at)
	if err != nil {
		return nil, fmt.Errorf("chart %s %s in registry %s: %w", name, version, src, registryError(err))
	}
	return data, nil
}

func layer(ctx context.Context, r *remote.Repository, at ocispec.Descriptor) ([]byte, error) {
	raw, err := content.FetchAll(ctx, r, at)
	if err != nil {
		return nil, err
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, errors.New("the manifest cannot be read")
	}
	for _, l := range m.Layers {
		if l.MediaType != chartLayer {
			continue
		}
		if l.Size > mostChart {
			return nil, fmt.Errorf("it is larger than %d MiB, too large for a chart", mostChart>>20)
		}
		return content.FetchAll(ctx, r, l)
	}
	return nil, errors.New("it is not a chart: it has no chart layer")
}

// registryError returns err, or a clearer error for common responses of registries.
func registryError(err error) error {
	var answer *errcode.ErrorResponse
	switch {
	case !errors.As(err, &answer):
		return err
	case answer.StatusCode == http.StatusUnauthorized, answer.StatusCode == http.StatusForbidden:
		return errors.New(
			"the registry requires credentials, which carrick does not send; pull the chart yourself (helm pull) and " +
				"enter its path",
		)
	}
	return err
}
