package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tgz packs files into the format of a packed chart.
func tgz(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: "small/" + name, Mode: 0o600, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(text))
	}
	_ = w.Close()
	_ = z.Close()
	return out.Bytes()
}

func small(version string) map[string]string {
	return map[string]string{
		"Chart.yaml":       "apiVersion: v2\nname: small\nversion: " + version + "\n",
		"templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
	}
}

// shop returns the source for a fake chart repository with these files.
func shop(t *testing.T, files map[string][]byte) Source {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, ok := files[strings.TrimPrefix(r.URL.Path, "/charts/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(data)
	}))
	t.Cleanup(s.Close)
	return Source(s.URL + "/charts")
}

func TestARepository(t *testing.T) {
	good, tampered := tgz(t, small("1.10.0")), tgz(t, small("1.9.0"))
	sum := fmt.Sprintf("%x", sha256.Sum256(good))
	index := `
apiVersion: v1
entries:
  small:
    - {version: 1.9.0, urls: [small-1.9.0.tgz], digest: ` + sum + `}
    - {version: 1.10.0, appVersion: "7", urls: [small-1.10.0.tgz], digest: "sha256:` + sum + `"}
    - {version: 1.8.0, urls: [gone.tgz]}
    - {version: 1.7.0, urls: [small-1.10.0.tgz]}
    - {version: 1.6.0, urls: [broken.tgz]}
    - {version: 1.5.0, urls: ["file:///etc/passwd"]}
    - {version: 1.4.0}
`
	src := shop(
		t,
		map[string][]byte{
			"index.yaml": []byte(index), "small-1.10.0.tgz": good, "small-1.9.0.tgz": tampered, "broken.tgz": good[:len(good)/2],
		},
	)
	all, err := Versions(t.Context(), src, "small")
	if err != nil || len(all) != 7 || all[0].Version != "1.10.0" || all[0].AppVersion != "7" || all[1].Version != "1.9.0" {
		t.Fatalf("%+v, %v", all, err)
	}
	c, err := Load(t.Context(), src, "small", "v1.10.0")
	if err != nil || c.Name() != "small" || c.Version() != "1.10.0" || c.From() != string(src)+", sha256:"+sum {
		t.Fatalf("%+v, %v", c, err)
	}
	for version, want := range map[string]string{
		"1.9.0": "does not have the checksum", "1.8.0": "answers 404", "1.7.0": "do not trust",
		"1.6.0": "not a chart, or is damaged",
		"1.5.0": "not https", "1.4.0": "has no URL for", "": "no version is set",
		"2.0.0": "it has 1.10.0, 1.9.0, 1.8.0",
	} {
		if _, err := Load(t.Context(), src, "small", version); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", version, err)
		}
	}
	var none *VersionError
	if _, err := Load(t.Context(), src, "small", "2.0.0"); !errors.As(err, &none) || len(none.Has) != 7 {
		t.Errorf("%v", err)
	}
	if _, err := Versions(t.Context(), src, "large"); err == nil ||
		!strings.Contains(err.Error(), `no chart "large"; it has small`) {
		t.Error(err)
	}
}

func TestARepositoryThatIsNone(t *testing.T) {
	for name, c := range map[string]struct {
		src  Source
		want string
	}{
		"no index":    {shop(t, nil), "index.yaml answers 404"},
		"other YAML":  {shop(t, map[string][]byte{"index.yaml": []byte("<html>")}), "not a repository index"},
		"huge":        {shop(t, map[string][]byte{"index.yaml": make([]byte, mostIndex+1)}), "larger than 32 MiB"},
		"unreachable": {"http://127.0.0.1:1/charts", "cannot be reached"},
		"no host":     {"https://", "cannot be parsed"},
		"plain": {
			"http://charts.example.org",
			"http://charts.example.org/index.yaml is not https, so the chart could be changed in transit",
		},
		"no registry": {"oci://127.0.0.1:1/charts", "registry oci://127.0.0.1:1/charts"},
	} {
		_, err := Versions(t.Context(), c.src, "small")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFolderAndAFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) Source {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return Source(path)
	}
	whole := tgz(t, small("1.0.0"))
	needy := small("1.0.0")
	needy["Chart.yaml"] += "dependencies: [{name: other, version: 1.0.0, repository: 'https://example.org'}]\n"
	if c, err := Load(t.Context(), write("a.tgz", whole), "small", ""); err != nil || c.Version() != "1.0.0" {
		t.Fatal(err)
	}
	packedFolder, err := Load(t.Context(), "testdata/tiny", "tiny", "")
	if err != nil || packedFolder.Digest() != tiny(t).Digest() || len(packedFolder.Digest()) != 64 {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		src         Source
		chart, vers string
		want        string
	}{
		"nothing":       {Source(dir + "/none"), "small", "", "is not a chart"},
		"half":          {write("half.tgz", whole[:len(whole)/2]), "small", "", "not a chart, or is damaged"},
		"text":          {write("text.tgz", []byte("hello")), "small", "", "a packaged chart is a .tgz"},
		"no chart":      {Source(dir), "small", "", "not a chart, or is damaged"},
		"another":       {write("b.tgz", whole), "large", "", `is chart "small", not "large"`},
		"other version": {write("c.tgz", whole), "small", "2.0.0", "it has 1.0.0"},
		"needy":         {write("d.tgz", tgz(t, needy)), "small", "", "its subcharts are missing: other"},
		"climbing":      {write("e.tgz", tgz(t, map[string]string{"../../x": "y"})), "small", "", "parent directory"},
	} {
		_, err := Load(t.Context(), c.src, c.chart, c.vers)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
