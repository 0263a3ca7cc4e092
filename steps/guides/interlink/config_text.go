package interlink

import (
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml" // the parser that the virtual kubelet uses; it accepts duplicate keys

	"carrick/steps/action"
)

// These keys of InterLinkConfig.yaml determine how jobs reach the API.
const (
	keyAddress = "KubernetesApiAddr"
	keyPort    = "KubernetesApiPort"
	keyCA      = "KubernetesApiCaCrt"
	keyDropped = "DisableProjectedVolumes"
	keyVerbose = "VerboseLogging"
)

// vkSetting is a key of InterLinkConfig.yaml and its required value: a string, or false. A missing key counts as "" or
// false.
type vkSetting struct {
	key   string
	value any
}

// parseConfig parses InterLinkConfig.yaml as the virtual kubelet does.
func parseConfig(text string) (map[string]any, error) {
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		said := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
		return nil, errors.New(said)
	}
	if out == nil {
		out = map[string]any{}
	}
	for _, key := range []string{keyAddress, keyPort, keyCA} {
		switch v := out[key].(type) {
		case nil, string:
		case float64:
			out[key] = strconv.FormatFloat(v, 'f', -1, 64)
		default:
			return nil, fmt.Errorf("%s is not a string", key)
		}
	}
	for _, key := range []string{keyDropped, keyVerbose} {
		if _, ok := out[key].(bool); !ok && out[key] != nil {
			return nil, fmt.Errorf("%s is neither true nor false", key)
		}
	}
	return out, nil
}

// configText returns the string value of key, or "" if key is not set.
func configText(values map[string]any, key string) string {
	s, _ := values[key].(string)
	return s
}

// editConfig applies settings to text, an InterLinkConfig.yaml, and keeps the rest of text verbatim. If text does not
// parse because the chart has indented the CA incorrectly, editConfig first corrects the indentation.
func editConfig(text string, settings []vkSetting) (string, error) {
	was, err := parseConfig(text)
	if err != nil {
		text = straightenCA(text)
		if was, err = parseConfig(text); err != nil {
			return "", fmt.Errorf("%s is not valid, and not only because of the CA: %w", kubeletConfigKey, err)
		}
	}
	for _, s := range settings {
		if configSays(was, s) {
			continue
		}
		var put any
		if s.value != "" {
			put = s.value
		}
		if text, err = action.SetYAML(text, s.key, put); err != nil {
			return "", fmt.Errorf("%s: %w", kubeletConfigKey, err)
		}
		now, err := parseConfig(text)
		want := maps.Clone(was)
		if want[s.key] = s.value; s.value == "" {
			delete(want, s.key)
		}
		if err != nil || !reflect.DeepEqual(now, want) {
			return "", fmt.Errorf(
				"carrick cannot set %s in %s without changing other keys; set it manually", s.key, kubeletConfigKey,
			)
		}
		was = now
	}
	return text, nil
}

// parseRepaired parses text, an InterLinkConfig.yaml whose CA the chart may have indented incorrectly.
func parseRepaired(text string) (map[string]any, error) {
	values, err := parseConfig(text)
	if err != nil {
		values, err = parseConfig(straightenCA(text))
	}
	return values, err
}

// configSays reports whether values already contain the required value of s.
func configSays(values map[string]any, s vkSetting) bool {
	v, ok := values[s.key]
	if !ok || v == nil {
		return s.value == "" || s.value == false
	}
	return v == s.value
}

var caLine = regexp.MustCompile(`^( *)` + keyCA + `: *\|[-+]? *$`)

// straightenCA corrects the indentation of the CA in text. Charts since 0.5.3 indent the first line of a CA deeper than
// the other lines, or do not indent the other lines at all.
func straightenCA(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		m := caLine.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		inside := false
		for j := i + 1; j < len(lines); j++ {
			word := strings.TrimSpace(lines[j])
			switch {
			case strings.HasPrefix(word, "-----BEGIN "):
				inside = true
			case !inside && word != "":
				return strings.Join(lines, "\n")
			}
			if word != "" {
				lines[j] = m[1] + "  " + word
			}
			if strings.HasPrefix(word, "-----END ") {
				inside = false
			}
		}
	}
	return strings.Join(lines, "\n")
}

// chartBug reports whether text fails to parse only because the chart has indented the CA incorrectly.
func chartBug(text string) bool {
	if _, err := parseConfig(text); err == nil {
		return false
	}
	_, err := parseConfig(straightenCA(text))
	return err == nil
}

// plainPEM returns only the certificates in text, re-encoded as PEM.
func plainPEM(text string) string {
	var out strings.Builder
	rest := []byte(text)
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return out.String()
		}
		if block.Type == "CERTIFICATE" {
			out.Write(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}))
		}
	}
}
