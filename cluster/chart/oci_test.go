package chart

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// registry returns an OCI registry with one chart under one tag.
func registry(t *testing.T, layerType string, chart []byte, tamper bool) Source {
	t.Helper()
	digest := func(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }
	config := []byte("{}")
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": map[string]any{
			"mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": digest(config), "size": len(config),
		},
		"layers": []any{map[string]any{"mediaType": layerType, "digest": digest(chart), "size": len(chart)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Errorf("credentials were sent: %s", r.Header.Get("Authorization"))
		}
		at, ok := strings.CutPrefix(r.URL.Path, "/v2/charts/small/")
		body := []byte(nil)
		switch {
		case strings.HasPrefix(r.URL.Path, "/v2/charts/closed/"):
			w.WriteHeader(http.StatusUnauthorized)
			return
		case ok && at == "tags/list":
			body = []byte(`{"name":"charts/small","tags":["1.9.0","1.10.0_build.1"]}`)
		case ok && (at == "manifests/1.10.0_build.1" || at == "manifests/"+digest(manifest)):
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			w.Header().Set("Docker-Content-Digest", digest(manifest))
			body = manifest
		case ok && at == "blobs/"+digest(chart):
			body = append([]byte(nil), chart...)
			if tamper {
				body[len(body)/2] ^= 1
			}
		default:
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		if r.Method != http.MethodHead {
			_, _ = w.Write(body)
		}
	}))
	t.Cleanup(s.Close)
	return Source("oci://" + strings.TrimPrefix(s.URL, "http://") + "/charts")
}

func TestARegistry(t *testing.T) {
	const version = "1.10.0+build.1"
	packed := tgz(t, small(version))
	src := registry(t, chartLayer, packed, false)
	all, err := Versions(t.Context(), src, "small")
	if err != nil || len(all) != 2 || all[0].Version != version {
		t.Fatalf("%+v, %v", all, err)
	}
	c, err := Load(t.Context(), src, "small", version)
	if err != nil || c.Name() != "small" || c.Version() != version {
		t.Fatalf("%+v, %v", c, err)
	}
	for name, c := range map[string]struct {
		src         Source
		chart, vers string
		want        string
	}{
		"no version": {src, "small", "2.0.0", "it has 1.10.0+build.1, 1.9.0"},
		"no chart":   {src, "large", "1.0.0", `has no chart "large"`},
		"closed":     {src, "closed", "1.0.0", "requires credentials, which carrick does not send"},
		"no layer": {
			registry(t, "application/vnd.oci.image.layer.v1.tar", packed, false), "small", version, "no chart layer",
		},
		"tampered": {registry(t, chartLayer, packed, true), "small", version, "digest"},
	} {
		if _, err := Load(t.Context(), c.src, c.chart, c.vers); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
