package stepstest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// random matches text that always differs between two runs. This includes UIDs, times, keys, hashes (also at the end of
// names), and ports that a cluster chooses.
var random = regexp.MustCompile(
	`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z|[A-Za-z0-9+/_-]{40,}={0,2}|sha256:[0-9a-f]+|\b[0-9A-HJKMNP-TV-Z]{26}\b|-[0-9a-f]{10,16}\b|\b3[0-2]\d{3}\b`,
)

// allotted lists kinds that a cluster creates for other objects, with generated names.
var allotted = []string{"ipaddresses.networking.k8s.io"}

// same returns how a snapshot differs from an earlier one, ignoring random values. It lists new and changed objects,
// and "gone" for deleted objects. Objects that differ only in their names are numbered.
func (x Proof) same(before, now map[string]string) map[string]string {
	own := regexp.MustCompile(x.Random)
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if before[name] == now[name] || slices.Contains(allotted, strings.Fields(name)[1]) {
			continue
		}
		plain := random.ReplaceAllString(name, "…")
		key := plain
		for n := 2; out[key] != ""; n++ {
			key = fmt.Sprintf("%s, number %d", plain, n)
		}
		text := withoutData(now[name])
		if x.Random != "" {
			text = own.ReplaceAllString(text, "…")
		}
		out[key] = random.ReplaceAllString(text, "…")
	}
	for name := range before {
		if _, there := now[name]; !there {
			out[name] = "gone"
		}
	}
	return out
}

// withoutData replaces each value of a Secret with a boolean. The boolean is true if the value is not empty.
func withoutData(text string) string {
	var object map[string]any
	if json.Unmarshal([]byte(text), &object) != nil || object["kind"] != "Secret" {
		return text
	}
	data, _ := object["data"].(map[string]any)
	for key, v := range data {
		data[key] = v != ""
	}
	b, _ := json.Marshal(object)
	return string(b)
}

// shortest is the minimum length of a value that counts as a secret. Shorter values are words.
const shortest = 20

// secrets returns the values of all Secrets in both clusters, and the secret answers.
func (s *stage) secrets(t *testing.T) []string {
	t.Helper()
	var out []string
	out = append(out, s.tokens(t)...)
	for at := range s.way {
		side := string(at)
		var list struct {
			Items []struct {
				Type string
				Data map[string]string
			}
		}
		if err := json.Unmarshal([]byte(s.box.Run(t, side, "", "get", "secrets", "-A", "-o", "json")), &list); err != nil {
			t.Fatal(err)
		}
		for _, secret := range list.Items {
			if secret.Type == "helm.sh/release.v1" {
				continue
			}
			for key, encoded := range secret.Data {
				raw, _ := base64.StdEncoding.DecodeString(encoded)
				if len(raw) >= shortest && !public(key, string(raw)) {
					out = append(out, encoded, string(raw))
				}
			}
		}
	}
	for key, v := range s.answers {
		if q, _ := s.Guide.Question(key); q != nil && q.Secret {
			out = append(out, v.(string))
		}
	}
	return out
}

// public reports whether a value of a Secret is not secret.
func public(key, value string) bool {
	address, err := url.Parse(value)
	isAddress := err == nil && address.Scheme == "https" && address.User == nil && address.RawQuery == ""
	return isAddress || strings.HasPrefix(value, "-----BEGIN CERTIFICATE") ||
		strings.Contains(strings.ToLower(key), "public")
}

// nothingSecret fails the test if a file that carrick might have written contains a secret of either cluster.
func (s *stage) nothingSecret(t *testing.T) {
	t.Helper()
	known := s.secrets(t)
	if len(known) == 0 {
		t.Error("no secret is known, so the test proves nothing")
	}
	files := 0
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		for _, secret := range known {
			if strings.Contains(string(data), secret) {
				rel, _ := filepath.Rel(s.dir, path)
				t.Errorf("%s contains a secret", rel)
				break
			}
		}
		return err
	})
	if err != nil || files < 3 { // link file, log and audit log
		t.Errorf("read %d files, %v", files, err)
	}
}
