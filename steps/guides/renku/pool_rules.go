package renku

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The rules in this file apply to POST /resource_pools (renku-data-services
// components/renku_data_services/crc/api.spec.yaml, crc/core.py). Renku's API enforces most of
// them. Renku's database or Kubernetes enforces the others.

// valueRule checks one value of a pool. It returns the violated rule as a predicate such as "is not
// a string", or "" if the value is valid.
type valueRule func(n *yaml.Node) string

type poolField struct {
	required bool
	check    valueRule
}

var poolFields = map[string]poolField{
	"name":                       {true, nameValue},
	"public":                     {true, boolValue},
	"default":                    {true, boolValue},
	"classes":                    {true, nil}, // readPool checks each class
	"quota":                      {false, nil},
	"cluster_id":                 {false, clusterIDValue},
	"platform":                   {false, oneOf("linux/amd64", "linux/arm64")},
	"idle_threshold":             {false, seconds},
	"hibernation_threshold":      {false, seconds},
	"hibernation_warning_period": {false, seconds},
	"cpu_limit_factor":           {false, between(1, 100)},
}

var quotaFields = map[string]poolField{
	"cpu":    {true, above(0)},
	"memory": {true, wholeBetween(1, math.MaxInt32)},
	"gpu":    {true, wholeBetween(0, math.MaxInt32)},
	"id":     {true, quotaIDValue},
}

var classFields = map[string]poolField{
	"name":            {true, nameValue},
	"cpu":             {true, above(0)},
	"memory":          {true, wholeBetween(1, math.MaxInt32)},
	"gpu":             {true, wholeBetween(0, math.MaxInt32)},
	"max_storage":     {true, wholeBetween(1, math.MaxInt32)},
	"default_storage": {true, wholeBetween(1, math.MaxInt32)},
	"default":         {true, boolValue},
	"tolerations":     {false, listOf(nodeKey)},
	"node_affinities": {false, listOf(affinity)},
	"quota_enforced":  {false, boolValue},
}

// unrelated lists keys that Renku accepts but that pool.spec must not set. The values are the
// reasons.
var unrelated = map[string]string{
	"remote": "the field is for FirecREST and Runai, not for remote clusters",
	"id":     "Renku assigns the ID",
}

func nameValue(n *yaml.Node) string {
	if n.Tag != "!!str" {
		return "is not a string"
	}
	if err := checkLength("a pool or class", n.Value); err != nil {
		return "is invalid: " + err.Error()
	}
	return ""
}

func boolValue(n *yaml.Node) string {
	if n.Tag != "!!bool" {
		return "is neither true nor false"
	}
	return ""
}

func clusterIDValue(n *yaml.Node) string {
	if !ulid.MatchString(n.Value) && !strings.HasPrefix(n.Value, "$") {
		return fmt.Sprintf("is %q, which is not a ULID (omit the field, because carrick sets it)", n.Value)
	}
	return ""
}

func quotaIDValue(n *yaml.Node) string {
	if n.Tag != "!!str" { // Renku does not accept a number as an id
		return "is not a string (quote it if it looks like a number)"
	}
	if err := checkQuotaID(n.Value); err != nil {
		return "is invalid: " + err.Error()
	}
	return ""
}

func oneOf(words ...string) valueRule {
	return func(n *yaml.Node) string {
		if !slices.Contains(words, n.Value) {
			return fmt.Sprintf("is %q, not one of %s", n.Value, strings.Join(words, ", "))
		}
		return ""
	}
}

func yamlNumber(n *yaml.Node) (float64, bool) {
	var f float64
	ok := (n.Tag == "!!int" || n.Tag == "!!float") && n.Decode(&f) == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
	return f, ok
}

func above(low float64) valueRule {
	return func(n *yaml.Node) string {
		if f, ok := yamlNumber(n); !ok || f <= low {
			return fmt.Sprintf("is %q, not a number greater than %g", n.Value, low)
		}
		return ""
	}
}

func between(low, high float64) valueRule {
	return func(n *yaml.Node) string {
		if f, ok := yamlNumber(n); !ok || f < low || f > high {
			return fmt.Sprintf("is %q, not a number from %g to %g", n.Value, low, high)
		}
		return ""
	}
}

func wholeBetween(low, high float64) valueRule {
	return func(n *yaml.Node) string {
		if f, ok := yamlNumber(n); !ok || n.Tag != "!!int" || f < low || f > high {
			return fmt.Sprintf("is %q, not an integer of at least %g", n.Value, low)
		}
		return ""
	}
}

var seconds = wholeBetween(0, math.MaxInt32)

func listOf(of valueRule) valueRule {
	return func(n *yaml.Node) string {
		if n.Kind != yaml.SequenceNode {
			return "is not a list"
		}
		for _, item := range n.Content {
			if why := of(item); why != "" {
				return fmt.Sprintf("has an invalid item in line %d: the item %s", item.Line, why)
			}
		}
		return ""
	}
}

var nodeKeyShape = regexp.MustCompile(`^[a-z0-9A-Z][a-z0-9A-Z-_./]*[a-z0-9A-Z]$`)

func nodeKey(n *yaml.Node) string {
	if n.Tag != "!!str" || len(n.Value) < 3 || len(n.Value) > 63 || !nodeKeyShape.MatchString(n.Value) {
		return fmt.Sprintf(
			"is %q, not a label or taint key of 3 to 63 characters (Renku accepts keys, not values)", n.Value,
		)
	}
	return ""
}

func affinity(n *yaml.Node) string {
	if n.Kind != yaml.MappingNode {
		return "is not a mapping with a key"
	}
	key := false
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch name, v := n.Content[i].Value, n.Content[i+1]; name {
		case "key":
			if key = true; nodeKey(v) != "" {
				return "has a key that " + nodeKey(v)
			}
		case "required_during_scheduling":
			if why := boolValue(v); why != "" {
				return "has required_during_scheduling, which " + why
			}
		default:
			return fmt.Sprintf("has the unknown field %q", name)
		}
	}
	if !key {
		return "has no key"
	}
	return ""
}

// poolFault describes a violated rule. line is 0 if the rule concerns the whole pool.
type poolFault struct {
	line int
	text string
}

// walk checks the keys and values of one mapping. It returns the faults, and the values by key. The
// parameter what is the mapping's name in the faults.
func walk(what string, n *yaml.Node, fields map[string]poolField) (faults []poolFault, values map[string]*yaml.Node) {
	values = map[string]*yaml.Node{}
	if n.Kind != yaml.MappingNode {
		return []poolFault{{n.Line, what + " is not a mapping"}}, values
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		if v.Kind == yaml.AliasNode {
			v = v.Alias
		}
		f, known := fields[key.Value]
		switch {
		case values[key.Value] != nil:
			faults = append(faults, poolFault{key.Line, fmt.Sprintf("%s has %q twice", what, key.Value)})
		case !known && unrelated[key.Value] != "":
			faults = append(
				faults, poolFault{key.Line, fmt.Sprintf("%s cannot have %q: %s", what, key.Value, unrelated[key.Value])},
			)
		case !known:
			faults = append(faults, poolFault{key.Line, fmt.Sprintf("%s has the unknown field %q", what, key.Value)})
		case f.check != nil:
			if why := f.check(v); why != "" {
				faults = append(faults, poolFault{v.Line, fmt.Sprintf("%s of %s %s", key.Value, what, why)})
			}
		}
		values[key.Value] = v
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if fields[name].required && values[name] == nil {
			faults = append(faults, poolFault{n.Line, fmt.Sprintf("%s has no %s", what, name)})
		}
	}
	return faults, values
}
