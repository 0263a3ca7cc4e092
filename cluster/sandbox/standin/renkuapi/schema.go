// The API's schema (crc/api.spec.yaml, and the pydantic models generated from it in crc/apispec.py). It always rejects
// unknown keys. Unlike pydantic, it does not accept "443" for 443.

package renkuapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// field is the schema of one key.
type field struct {
	name     string
	kind     string // JSON schema type: string, integer, number, boolean, object or array
	required bool
	low      float64        // minimum number, or minimum length of a string
	high     float64        // maximum number or length; 0 means no limit
	above    bool           // the number must be greater than low
	pattern  *regexp.Regexp // pattern for strings
	values   []string       // allowed values
	fields   schema         // schema of an object or of an array's items; if empty, everything is allowed
}

type schema []field

// optional returns the schema without required fields.
func (s schema) optional() schema {
	all := slices.Clone(s)
	for i := range all {
		all[i].required = false
	}
	return all
}

// require returns the schema with the field name required.
func (s schema) require(name string) schema {
	all := slices.Clone(s)
	for i := range all {
		all[i].required = all[i].required || all[i].name == name
	}
	return all
}

// without returns the schema without the given fields.
func (s schema) without(names ...string) schema {
	return slices.DeleteFunc(slices.Clone(s), func(f field) bool { return slices.Contains(names, f.name) })
}

// faults returns one sentence for each violation. at is the path of object in these sentences.
func (s schema) faults(at string, object map[string]any) []string {
	found := []string{}
	known := map[string]bool{}
	for _, f := range s {
		known[f.name] = true
		value, given := object[f.name]
		switch {
		case value == nil && !f.required:
		case !given:
			found = append(found, at+f.name+": Field required")
		default:
			found = append(found, f.faults(at+f.name, value)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !known[name] {
			found = append(found, at+name+": Extra inputs are not permitted")
		}
	}
	return found
}

func (f field) faults(at string, value any) []string {
	wrong := func(format string, args ...any) []string { return []string{at + ": " + fmt.Sprintf(format, args...)} }
	switch v := value.(type) {
	case string:
		if f.kind == "string" {
			return f.textFaults(v, wrong)
		}
	case json.Number:
		if f.kind == "integer" || f.kind == "number" {
			return f.numberFaults(v, wrong)
		}
	case bool:
		if f.kind == "boolean" {
			return nil
		}
	case map[string]any:
		switch {
		case f.kind == "object" && f.fields == nil:
			return nil
		case f.kind == "object":
			return f.fields.faults(at+".", v)
		}
	case []any:
		if f.kind == "array" {
			return f.itemFaults(at, v)
		}
	}
	return wrong("Input should be a valid %s", f.kind)
}

func (f field) textFaults(text string, wrong func(string, ...any) []string) []string {
	length := float64(utf8.RuneCountInString(text))
	switch {
	case f.values != nil && !slices.Contains(f.values, text):
		return wrong("Input should be '%s'", strings.Join(f.values, "' or '"))
	case length < f.low:
		return wrong("String should have at least %v characters", f.low)
	case f.high > 0 && length > f.high:
		return wrong("String should have at most %v characters", f.high)
	case f.pattern != nil && !f.pattern.MatchString(text):
		return wrong("String should match pattern '%s'", f.pattern)
	}
	return nil
}

func (f field) numberFaults(number json.Number, wrong func(string, ...any) []string) []string {
	value, err := number.Float64()
	if err != nil {
		return wrong("Input should be a finite number")
	}
	if _, err := number.Int64(); err != nil && f.kind == "integer" {
		return wrong("Input should be a valid integer")
	}
	switch {
	case f.above && value <= f.low:
		return wrong("Input should be greater than %v", f.low)
	case value < f.low:
		return wrong("Input should be greater than or equal to %v", f.low)
	case f.high > 0 && value > f.high:
		return wrong("Input should be less than or equal to %.0f", f.high)
	}
	return nil
}

func (f field) itemFaults(at string, items []any) []string {
	found := []string{}
	for i, item := range items {
		place := fmt.Sprintf("%s.%d", at, i)
		object, isObject := item.(map[string]any)
		switch {
		case f.fields != nil && isObject:
			found = append(found, f.fields.faults(place+".", object)...)
		case f.fields != nil:
			found = append(found, place+": Input should be a valid dictionary")
		default:
			found = append(found, field{kind: "string", low: f.low, high: f.high, pattern: f.pattern}.faults(place, item)...)
		}
	}
	return found
}

const bodyLimit = 1 << 20 // bytes

// read validates the request body against s and decodes it into out.
func read(r *http.Request, s schema, out any) error {
	value, data, err := parse(r)
	if err != nil {
		return err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return wrongType()
	}
	return into(out, data, s.faults("", object))
}

// readList is like read, but the body is a list of objects.
func readList(r *http.Request, s schema, out any) error {
	value, data, err := parse(r)
	if err != nil {
		return err
	}
	items, ok := value.([]any)
	if !ok {
		return wrongType()
	}
	faults := field{fields: s}.itemFaults("", items)
	for i := range faults {
		faults[i] = strings.TrimPrefix(faults[i], ".")
	}
	return into(out, data, faults)
}

func parse(r *http.Request) (any, []byte, error) {
	data, err := io.ReadAll(io.LimitReader(r.Body, bodyLimit))
	if err != nil {
		return nil, nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil || decoder.More() {
		return nil, nil, refusal(http.StatusBadRequest, "Failed when parsing body as json")
	}
	return value, data, nil
}

func into(out any, data []byte, faults []string) error {
	if len(faults) > 0 {
		return wrongFields(faults)
	}
	if json.Unmarshal(data, out) != nil {
		return wrongType()
	}
	return nil
}
