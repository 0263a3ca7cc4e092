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

	"sigs.k8s.io/yaml" // the version that the virtual kubelet uses: a duplicate key is not an error

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

// vkSetting is a key of InterLinkConfig.yaml and its required value: a string, or false. A
// missing key is equal to "" and false.
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

// configText returns the string under a key, or "" if it is not set.
func configText(values map[string]any, key string) string {
	s, _ := values[key].(string)
	return s
}

// editConfig sets keys in InterLinkConfig.yaml and keeps the rest verbatim. If the text does
// not parse because the chart has indented the CA incorrectly, it corrects that first.
func editConfig(text string, settings []vkSetting) (string, error) {
	was, err := parseConfig(text)
	if err != nil {
		text = straightenCA(text)
		if was, err = parseConfig(text); err != nil {
			return "", fmt.Errorf("%s cannot be read, and not only because of the CA: %w", kubeletConfigKey, err)
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
				"carrick cannot set %s in %s without changing more than that; set it manually", s.key, kubeletConfigKey,
			)
		}
		was = now
	}
	return text, nil
}

// configSays reports whether the values already contain a setting.
func configSays(values map[string]any, s vkSetting) bool {
	v, ok := values[s.key]
	if !ok || v == nil {
		return s.value == "" || s.value == false
	}
	return v == s.value
}

var caLine = regexp.MustCompile(`^( *)` + keyCA + `: *\|[-+]? *$`)

// straightenCA corrects a CA as rendered by the chart since 0.5.3: its first line is indented
// deeper than the rest, or the rest not at all.
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

// chartBug reports whether a text does not parse because of the chart's CA.
func chartBug(text string) bool {
	if _, err := parseConfig(text); err == nil {
		return false
	}
	_, err := parseConfig(straightenCA(text))
	return err == nil
}

// plainPEM returns the certificates of a PEM text in canonical encoding.
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
