package chart

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"carrick/cluster/clustertest/hostile"
)

// Any user with access to the namespace can write a release's Secret. Fields of the release must be safe to display,
// and the error for an invalid release must not contain its content.
func FuzzRelease(f *testing.F) {
	const one = `{"name":"renku","namespace":"renku","version":1,"info":{"status":"deployed","description":%q,"notes":%q},"chart":{"metadata":{"name":"renku","version":"2.19.3","appVersion":%q,"dependencies":[{"name":%q}]},"values":{"a":1},"files":[{"name":"crds/x.yaml","data":"YQ=="}]},"config":{"a":{"b":%q}},"manifest":"a: b","hooks":[{}]}`
	for _, text := range hostile.Texts {
		f.Add([]byte(fmt.Sprintf(one, text, text, text, text, text)), true)
	}
	f.Add([]byte(`{"name":"a","chart":{"metadata":{"name":"b"}},"hooks":[null]}`), false)
	f.Add([]byte(`{"name":"a","info":{"last_deployed":"never"}}`), false)
	f.Fuzz(func(t *testing.T, data []byte, packed bool) {
		if packed {
			var out bytes.Buffer
			z := gzip.NewWriter(&out)
			_, _ = z.Write(data)
			_ = z.Close()
			data = out.Bytes()
		}
		r, err := decode(base64.StdEncoding.EncodeToString(data))
		if err != nil {
			if bad := hostile.Unfit(err.Error()); bad != "" || len(err.Error()) > 200 {
				t.Errorf("%s: %v", bad, err)
			}
			return
		}
		for _, text := range []string{
			r.Name, r.Namespace, r.Chart, r.Version, r.AppVersion, r.Status, r.Description, r.Notes, fmt.Sprint(r.Dependencies),
		} {
			if bad := hostile.Unfit(text); bad != "" {
				t.Error(bad)
			}
		}
		_, _ = plain(r.inner.given)
	})
}

// Data that would unpack to more than the maximum size of a release is not unpacked.
func TestAReleaseThatUnpacksWithoutEnd(t *testing.T) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	for range mostDecoded>>20 + 1 {
		if _, err := z.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := decode(base64.StdEncoding.EncodeToString(out.Bytes())); err == nil ||
		!strings.Contains(err.Error(), "larger than") {
		t.Errorf("%d bytes: %v", out.Len(), err)
	}
}
