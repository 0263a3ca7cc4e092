// Package format implements the output formats of -o: tables, JSON, YAML and JUnit.
package format

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"carrick/cmd/carrick/exit"
)

// ByCommand lists the valid formats of each command. The first one is the default.
var ByCommand = map[string][]string{
	"check": {"table", "json", "yaml", "junit"}, "diff": {"table", "json", "yaml"},
	"apply": {"table", "json", "yaml"}, "undo": {"table", "json", "yaml"},
	"explain": {"text", "json", "yaml"}, "guides": {"text", "json", "yaml"}, "version": {"text", "json", "yaml"},
}

// Document writes doc. format is json or yaml.
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

// Valid returns a usage error unless of contains value.
func Valid(value string, of ...string) error {
	if slices.Contains(of, value) {
		return nil
	}
	return exit.Usagef("-o %q is not one of %s", value, strings.Join(of, ", "))
}
