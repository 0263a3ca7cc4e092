package stepstest

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"sigs.k8s.io/yaml"
)

var helmRelease = regexp.MustCompile(`\$\{helm-release ([^ }/]+)\}`)

// releases replaces ${helm-release FILE} by the value of key release in a
// Secret of Helm's: the release that a files/ section describes, as YAML.
func releases(text, folder string) (string, error) {
	var failed error
	out := helmRelease.ReplaceAllStringFunc(text, func(m string) string {
		name := helmRelease.FindStringSubmatch(m)[1]
		b, err := os.ReadFile(filepath.Join(folder, name))
		if err == nil {
			b, err = HelmRelease(b)
		}
		if err != nil {
			failed = fmt.Errorf("%s: %w", m, err)
		}
		return base64.StdEncoding.EncodeToString(b)
	})
	return out, failed
}

// HelmRelease is a release, described as YAML, as Helm keeps it under key release
// of a Secret: JSON, gzip, base64.
func HelmRelease(release []byte) ([]byte, error) {
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
