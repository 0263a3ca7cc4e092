package kubeconfig

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"carrick/cluster/clean"
)

// parser parses a kubeconfig and collects its problems.
type parser struct {
	problems []problem
	// file returns the content of a file to which the kubeconfig refers. If file is nil, the parser rejects such
	// references.
	file func(at *yaml.Node, key string) ([]byte, bool)
}

type problem struct {
	Problem
	line int
}

// settings maps the keys of a YAML mapping to their values, without keys whose value is null.
type settings map[string]*yaml.Node

func (p *parser) say(at *yaml.Node, rule, format string, args ...any) {
	problem := problem{Problem: Problem{Rule: rule, Detail: clean.Text(fmt.Sprintf(format, args...))}}
	if at != nil {
		problem.line = at.Line
		problem.Detail = atLine(at) + problem.Detail
	}
	p.problems = append(p.problems, problem)
}

// sorted returns the problems ordered by line. Problems without a line come last.
func (p *parser) sorted() []Problem {
	slices.SortStableFunc(p.problems, func(a, b problem) int {
		if (a.line == 0) != (b.line == 0) {
			return cmp.Compare(b.line, a.line)
		}
		return cmp.Compare(a.line, b.line)
	})
	out := make([]Problem, len(p.problems))
	for i, problem := range p.problems {
		out[i] = problem.Problem
	}
	return out
}

func (p *parser) parse(data []byte) Config {
	top := p.document(data)
	if top == nil {
		return Config{}
	}
	config := p.mapping(
		top, "the file", "apiVersion", "kind", "preferences", "clusters", "users", "contexts", "current-context",
		"extensions",
	)
	p.constant(config, "apiVersion", "v1")
	p.constant(config, "kind", "Config")
	clusters := p.named(
		config["clusters"], "cluster", "server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority",
		"certificate-authority-data", "proxy-url", "disable-compression", "extensions",
	)
	users := p.named(
		config["users"], "user", "client-certificate", "client-certificate-data", "client-key", "client-key-data",
		"token", "tokenFile", "as", "as-uid", "as-groups", "as-user-extra", "username", "password", "auth-provider", "exec",
		"extensions",
	)
	contexts := p.named(config["contexts"], "context", "cluster", "user", "namespace", "extensions")
	for _, name := range sortedKeys(clusters) {
		p.refuseCluster(name, clusters[name])
	}
	for _, name := range sortedKeys(users) {
		p.refuseUser(name, users[name])
	}
	return p.chosen(config, clusters, users, contexts)
}

// document returns the top-level mapping of the YAML document in data. It returns nil if data contains no mapping or
// more than one document.
func (p *parser) document(data []byte) *yaml.Node {
	if len(data) > limit {
		p.say(nil, RuleTooLarge, "it is larger than 1 MiB")
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	switch err := decoder.Decode(&first); {
	case errors.Is(err, io.EOF):
		p.say(nil, RuleNotYAML, "it is empty")
		return nil
	case err != nil && strings.Contains(err.Error(), "anchor"):
		p.say(nil, RuleAlias, "it refers to a YAML anchor that does not exist")
		return nil
	case err != nil:
		p.say(nil, RuleNotYAML, "not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		return nil
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		p.say(nil, RuleSeveralDocuments, "it contains more than one YAML document")
		return nil
	}
	if alias := findAlias(&first); alias != nil {
		p.say(alias, RuleAlias, "refers to a YAML anchor")
		return nil
	}
	if len(first.Content) != 1 || first.Content[0].Kind != yaml.MappingNode {
		p.say(&first, RuleNotYAML, "its top level is not a mapping")
		return nil
	}
	return first.Content[0]
}

// findAlias returns the first alias in a YAML tree, or nil. It does not follow aliases, so it terminates for every
// input.
func findAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n
	}
	for _, child := range n.Content {
		if found := findAlias(child); found != nil {
			return found
		}
	}
	return nil
}

// mapping returns the values of a mapping. It reports duplicate keys and keys that are not in known.
func (p *parser) mapping(n *yaml.Node, what string, known ...string) settings {
	if n.Kind != yaml.MappingNode {
		p.say(n, RuleWrongType, "%s must be a mapping", what)
		return nil
	}
	out, seen := settings{}, map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" || !slices.Contains(known, key.Value):
			p.say(key, RuleUnknownKey, "%s has an unknown key: %q", what, key.Value)
			continue
		case seen[key.Value]:
			p.say(key, RuleDuplicateKey, "%s has the key %s twice", what, key.Value)
			continue
		}
		seen[key.Value] = true
		if value.ShortTag() != "!!null" {
			out[key.Value] = value
		}
	}
	return out
}

// named decodes a list of {name: …, <kind>: {…}} and returns the inner mappings by name.
func (p *parser) named(list *yaml.Node, kind string, known ...string) map[string]settings {
	out := map[string]settings{}
	if list == nil {
		return out
	}
	if list.Kind != yaml.SequenceNode {
		p.say(list, RuleWrongType, "%ss must be a list", kind)
		return out
	}
	for _, item := range list.Content {
		entry := p.mapping(item, "an entry of "+kind+"s", "name", kind)
		name := p.text(entry, "name")
		inner := settings{}
		if entry[kind] != nil {
			inner = p.mapping(entry[kind], fmt.Sprintf("%s %q", kind, name), known...)
		}
		switch {
		case entry == nil:
		case name == "" && entry["name"] == nil:
			p.say(item, RuleNoName, "a %s has no name", kind)
		case out[name] != nil:
			p.say(item, RuleDuplicateName, "the name %q is used by two %ss", name, kind)
		default:
			if inner == nil {
				inner = settings{}
			}
			out[name] = inner
		}
	}
	return out
}

// text returns the string value of a key. It returns "" if the key does not exist or its value is not a string.
func (p *parser) text(from settings, key string) string {
	n := from[key]
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		p.say(n, RuleWrongType, "%s must be a string (in quotes, if it looks like a number)", key)
		return ""
	}
	return n.Value
}

// truth returns the boolean value of a key, or false if the key does not exist.
func (p *parser) truth(from settings, key string) bool {
	n := from[key]
	if n == nil {
		return false
	}
	var value bool
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || n.Decode(&value) != nil {
		p.say(n, RuleWrongType, "%s must be true or false", key)
		return false
	}
	return value
}

func (p *parser) constant(from settings, key, want string) {
	if got := p.text(from, key); got != "" && got != want {
		p.say(from[key], RuleWrongKind, "%s is %q, not %s", key, got, want)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
