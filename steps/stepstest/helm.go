package stepstest

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

var fileMacro = regexp.MustCompile(`\$\{(file|line|helm-release) ([^ }/]+)\}`)

// fileMacros replaces references to a files/ section in the data of a Secret. ${file FILE} becomes the file's base64.
// ${line FILE} becomes its text without the last line end. ${helm-release FILE} becomes the value of the key release in
// Helm's Secret, for the release that the file describes as YAML.
func fileMacros(text, folder string) (string, error) {
	var failed error
	out := fileMacro.ReplaceAllStringFunc(text, func(m string) string {
		p := fileMacro.FindStringSubmatch(m)
		b, err := os.ReadFile(filepath.Join(folder, p[2]))
		if err == nil && p[1] == "helm-release" {
			b, err = helmRelease(b)
		}
		if err != nil {
			failed = fmt.Errorf("%s: %w", m, err)
		}
		if p[1] == "line" {
			return strings.TrimSuffix(string(b), "\n")
		}
		return base64.StdEncoding.EncodeToString(b)
	})
	return out, failed
}

// helmRelease encodes a release, described as YAML, as Helm stores it in its Secret. The format is base64-encoded,
// gzipped JSON.
func helmRelease(release []byte) ([]byte, error) {
	json, err := yaml.YAMLToJSON(release)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(json); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return []byte(base64.StdEncoding.EncodeToString(b.Bytes())), nil
}
