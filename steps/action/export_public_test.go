package action

import (
	"encoding/base64"
	"encoding/pem"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/masked"
)

// An export may contain a Secret only if all its values are certificates.
func TestOnlyCertificatesArePublic(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	der := server.Certificate().Raw
	cert := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	key := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("key")}))
	for name, c := range map[string]struct {
		values []string
		public bool
	}{
		"one":          {[]string{cert}, true},
		"a chain":      {[]string{cert + "\n\n" + cert}, true},
		"two keys":     {[]string{cert, cert}, true},
		"and a key":    {[]string{cert + key}, false},
		"key beside":   {[]string{cert, key}, false},
		"words before": {[]string{"password: x\n" + cert}, false},
		"words after":  {[]string{cert + "password"}, false},
		"words in it":  {[]string{strings.Replace(cert, "-----\n", "-----\nPassword: x\n\n", 1)}, false},
		"no certificate": {
			[]string{string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("secret")}))}, false,
		},
		"another type":    {[]string{string(pem.EncodeToMemory(&pem.Block{Type: "X", Bytes: der}))}, false},
		"an empty value":  {[]string{""}, false},
		"no value at all": {nil, false},
	} {
		data := map[string]any{}
		for i, v := range c.values {
			data[string(rune('a'+i))] = base64.StdEncoding.EncodeToString([]byte(v))
		}
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "data": data}}
		if got := withheld(o); got == c.public {
			t.Errorf("%s: withheld is %t", name, got)
		}
	}
}

func TestValuesOfAnExportLackTheSecretOnes(t *testing.T) {
	open, left := openValues(map[string]any{
		"a": 1, "none": map[string]any{}, "deep": map[string]any{"password": masked.New("x"), "user": "u"},
		"alone": map[string]any{"token": masked.New("x")},
		"list":  []any{"a", map[string]any{"b": masked.New("x")}}, "names": []any{"n"},
	}, "")
	want := map[string]any{"a": 1, "none": map[string]any{}, "deep": map[string]any{"user": "u"}, "names": []any{"n"}}
	if d := cmp.Diff(want, open); d != "" {
		t.Error(d)
	}
	if !slices.Equal(left, []string{"alone.token", "deep.password", "list"}) {
		t.Errorf("left out: %v", left)
	}
}
