package kubeconfig

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// shape is the structure of a kubeconfig. It is used only to get errors with line numbers from the YAML decoder.
type shape struct {
	APIVersion     string `yaml:"apiVersion"`
	Kind           string `yaml:"kind"`
	CurrentContext string `yaml:"current-context"`
	Contexts       []struct {
		Name    string            `yaml:"name"`
		Context map[string]string `yaml:"context"`
	} `yaml:"contexts"`
	Clusters []struct {
		Name    string         `yaml:"name"`
		Cluster map[string]any `yaml:"cluster"`
	} `yaml:"clusters"`
	Users []struct {
		Name string         `yaml:"name"`
		User map[string]any `yaml:"user"`
	} `yaml:"users"`
}

var (
	yamlLine  = regexp.MustCompile(`line (\d+): (.*)`)
	wrongType = regexp.MustCompile("^cannot unmarshal (!!\\w+)(?: `[^`]*`)? into (.*)$")
)

// located converts client-go's error about a kubeconfig file to an error that starts with the line: ", line 3: …". If
// parsing the file again does not show the line, the error starts with ": …". The error contains no value of the file,
// because any value could be a secret.
func located(file string, cause error) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf(": %w", withoutPath(err))
	}
	if err := yaml.Unmarshal(data, &shape{}); err != nil {
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
			return fmt.Errorf(", line %s: %s", m[1], plainYAML(m[2]))
		}
		return fmt.Errorf(": %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	var root yaml.Node
	if yaml.Unmarshal(data, &root) == nil {
		if key, line := notBase64(&root); key != "" {
			return fmt.Errorf(", line %d: the value of %s is not base64", line, key)
		}
	}
	return fmt.Errorf(": %w", cause)
}

func withoutPath(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// plainYAML rewrites an error from go-yaml, which uses Go's terms, so that it uses YAML's terms.
func plainYAML(problem string) string {
	m := wrongType.FindStringSubmatch(problem)
	if m == nil {
		return problem
	}
	words := map[string]string{
		"!!map": "a map", "!!seq": "a list", "!!str": "a string", "!!int": "a number", "!!bool": "a boolean",
	}
	found, known := words[m[1]]
	if !known {
		found = m[1]
	}
	expected := "a string"
	switch {
	case strings.HasPrefix(m[2], "[]"):
		expected = "a list"
	case strings.HasPrefix(m[2], "map["), strings.HasPrefix(m[2], "struct"), strings.HasPrefix(m[2], "kubeconfig."):
		expected = "a map"
	}
	return fmt.Sprintf("found %s, expected %s", found, expected)
}

// notBase64 returns the first key that ends in "-data" and whose value is not valid base64.
func notBase64(n *yaml.Node) (key string, line int) {
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			name, value := n.Content[i], n.Content[i+1]
			if value.Kind != yaml.ScalarNode || !strings.HasSuffix(name.Value, "-data") {
				continue
			}
			if _, err := base64.StdEncoding.DecodeString(value.Value); err != nil {
				return name.Value, value.Line
			}
		}
	}
	for _, child := range n.Content {
		if key, line := notBase64(child); key != "" {
			return key, line
		}
	}
	return "", 0
}
