package stepstest

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"regexp"
)

// value is ${file NAME} or ${helm NAME}.
var value = regexp.MustCompile(`\$\{(file|helm) ([^ }]+)\}`)

// values replaces, in the objects of a side, what is made of a files/NAME
// section of the state or of its base: ${file NAME} is its base64, as a Secret
// holds it, ${helm NAME} is the release that it describes in JSON, as Helm
// stores it.
func (s *state) values(text string, expand func(string) string) (string, error) {
	var failed error
	out := value.ReplaceAllStringFunc(text, func(m string) string {
		p := value.FindStringSubmatch(m)
		for at := s; at != nil; at = at.base {
			content, ok := at.section("files/" + p[2])
			if !ok {
				continue
			}
			content = expand(content)
			if p[1] == "helm" {
				content = packed(content)
			}
			return base64.StdEncoding.EncodeToString([]byte(content))
		}
		failed = fmt.Errorf("%s: there is no section files/%s", m, p[2])
		return m
	})
	return out, failed
}

// packed is a release as Helm encodes it: gzip, then base64.
func packed(content string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(content)) // a buffer takes everything
	_ = z.Close()
	return base64.StdEncoding.EncodeToString(b.Bytes())
}
