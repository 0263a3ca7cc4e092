// Package format writes reports and plans in the formats of -o: tables, JSON, YAML and JUnit.
package format

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"carrick/cmd/carrick/exit"
)

// ByCommand are the formats of -o by command; the first is the default.
var ByCommand = map[string][]string{
	"check": {"table", "json", "yaml", "junit"}, "diff": {"table", "json", "yaml"},
	"apply": {"table", "json", "yaml"}, "undo": {"table", "json", "yaml"},
	"explain": {"text", "json", "yaml"}, "guides": {"text", "json", "yaml"}, "version": {"text", "json", "yaml"},
}

// Document writes one document; the format is json or yaml.
func Document(w io.Writer, format string, doc any) error {
	if format == "yaml" {
		b, err := yaml.Marshal(doc)
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(doc)
}

// Valid returns a usage error for an invalid value of -o.
func Valid(value string, of ...string) error {
	if slices.Contains(of, value) {
		return nil
	}
	return exit.Usagef("-o %q is none of %s", value, strings.Join(of, ", "))
}
