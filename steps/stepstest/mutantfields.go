package stepstest

import (
	"encoding/base64"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// change is one change to a JSON value.
type change struct {
	path string // such as "rules[0].verbs[1]" or "metadata.labels[app.kubernetes.io/name]"
	what string // "deleted", "altered" or "one more"
	at   []any  // keys and indexes
	edit func(old any) any
	less bool // altering the number makes it smaller
}

// gone is the value that the function edit of a change returns to delete a value.
type gone struct{}

// apply returns a changed copy of root.
func (c change) apply(root any) any {
	edit := c.edit
	if c.less && c.what == "altered" {
		edit = func(old any) any { return old.(float64) - 1 }
	}
	return edited(runtime.DeepCopyJSONValue(root), c.at, edit)
}

// edited replaces the value at a path with the result of edit.
func edited(v any, at []any, edit func(any) any) any {
	if len(at) == 0 {
		return edit(v)
	}
	switch key := at[0].(type) {
	case string:
		m := v.(map[string]any)
		m[key] = edited(m[key], at[1:], edit)
		if m[key] == any(gone{}) {
			delete(m, key)
		}
	case int:
		list := v.([]any)
		list[key] = edited(list[key], at[1:], edit)
		if list[key] == any(gone{}) {
			return slices.Delete(list, key, key+1)
		}
		return list
	}
	return v
}

// changes returns the changes to a value. Each leaf and each element is deleted, each leaf is altered, each list gets
// one more element, and each map of strings gets one more key.
func changes(v any, at []any) []change {
	path := pathText(at)
	add := func(what string, edit func(any) any) change {
		return change{path: path, what: what, at: slices.Clone(at), edit: edit}
	}
	deleted := add("deleted", func(any) any { return gone{} })
	var out []change
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, changes(v[key], append(slices.Clone(at), key))...)
		}
		if len(at) > 0 && path != "metadata" {
			out = append(out, deleted)
		}
		if isStringMap(at) {
			out = append(out, add("one more", func(old any) any {
				m := old.(map[string]any)
				m["added-by-mutant"] = alteredSibling(m)
				return m
			}))
		}
	case []any:
		for i := range v {
			out = append(out, changes(v[i], append(slices.Clone(at), i))...)
		}
		out = append(out, deleted)
		if len(v) > 0 {
			out = append(out, add("one more", func(old any) any {
				list := old.([]any)
				return append(list, alteredElement(runtime.DeepCopyJSONValue(list[len(list)-1])))
			}))
		}
	default:
		if len(at) > 0 {
			out = append(out, deleted, add("altered", func(old any) any { return altered(old, at) }))
		}
	}
	return out
}

// stringMaps are fields that contain maps of strings with arbitrary keys.
var stringMaps = []string{
	"labels", "annotations", "data", "matchLabels", "selector", "nodeSelector", "parameters",
}

func isStringMap(at []any) bool {
	if len(at) == 0 {
		return false
	}
	key, _ := at[len(at)-1].(string)
	return slices.Contains(stringMaps, key)
}

// alteredSibling returns the value for an additional key of a map. It is the first string value in the map, or "x".
func alteredSibling(m map[string]any) any {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if text, is := m[key].(string); is {
			return text
		}
	}
	return "x"
}

// alteredElement returns a copy of an element with another name or another first value.
func alteredElement(v any) any {
	switch v := v.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		if i := slices.IndexFunc(keys, func(key string) bool { return key == "name" || key == "key" }); i > 0 {
			keys[0], keys[i] = keys[i], keys[0]
		}
		for _, key := range keys {
			switch v[key].(type) {
			case map[string]any, []any:
				continue
			}
			v[key] = altered(v[key], nil)
			return v
		}
		for _, key := range keys { // an RBAC rule contains only lists
			if list, is := v[key].([]any); is && len(list) > 0 {
				list[0] = alteredElement(list[0])
				return v
			}
		}
		return v
	case []any:
		return v
	}
	return altered(v, nil)
}

var (
	quantity = regexp.MustCompile(`^(\d+)([A-Za-z%/].*)?$`)
	lastByte = regexp.MustCompile(`^(\d+\.\d+\.\d+\.)(\d+)(/\d+)?$`)
)

func altered(v any, at []any) any {
	switch v := v.(type) {
	case bool:
		return !v
	case float64:
		return v + 1
	case int64:
		return v + 1
	case int:
		return v + 1
	case string:
		return alteredText(v, at)
	}
	return "x"
}

func alteredText(v string, at []any) string {
	switch {
	case v == "True":
		return "False"
	case v == "False":
		return "True"
	case v == "true":
		return "false"
	case v == "false":
		return "true"
	}
	for was, now := range map[string]string{"=true": "=false", "=false": "=true"} { // in a command line or a unit
		if before, after, is := strings.Cut(v, was); is {
			return before + now + after
		}
	}
	if t, err := time.Parse(time.RFC3339, v); err == nil {
		return t.Add(24 * time.Hour).Format(time.RFC3339)
	}
	if m := lastByte.FindStringSubmatch(v); m != nil {
		n, _ := strconv.Atoi(m[2])
		return fmt.Sprintf("%s%d%s", m[1], (n+1)%256, m[3])
	}
	if m := quantity.FindStringSubmatch(v); m != nil && len(m[1]) < 10 {
		n, _ := strconv.Atoi(m[1])
		return fmt.Sprintf("%d%s", n+1, m[2])
	}
	if strings.HasPrefix(v, "-----BEGIN ") { // text after the end is not part of it
		i := len(v) * 2 / 5 // in the private half of an elliptic curve key
		return v[:i] + map[bool]string{true: "B", false: "A"}[v[i] == 'A'] + v[i+1:]
	}
	if len(at) > 0 && at[0] == "data" {
		if raw, err := base64.StdEncoding.DecodeString(v); err == nil && len(v) > 0 {
			return base64.StdEncoding.EncodeToString([]byte(alteredText(string(raw), nil)))
		}
	}
	return v + "x"
}

func pathText(at []any) string {
	var out strings.Builder
	for _, part := range at {
		switch part := part.(type) {
		case int:
			fmt.Fprintf(&out, "[%d]", part)
		case string:
			switch {
			case strings.ContainsAny(part, "./[] "):
				fmt.Fprintf(&out, "[%s]", part)
			case out.Len() == 0:
				out.WriteString(part)
			default:
				out.WriteString("." + part)
			}
		}
	}
	return out.String()
}

// has reports whether the path at exists in v.
func has(v any, at []any) bool {
	for _, part := range at {
		switch key := part.(type) {
		case string:
			m, _ := v.(map[string]any)
			inner, is := m[key]
			if !is {
				return false
			}
			v = inner
		case int:
			list, _ := v.([]any)
			if key >= len(list) {
				return false
			}
			v = list[key]
		}
	}
	return true
}
