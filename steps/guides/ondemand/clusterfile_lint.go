package ondemand

import (
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// lint compares the cluster file with clusterKeys and returns all faults in line order.
func (d *clusterDoc) lint() []fileFault {
	if d.v2 != nil {
		d.mappingOf("", d.v2, false)
		d.mountsOf(d.at("job.mounts"))
	}
	out := slices.Clone(d.bad)
	slices.SortStableFunc(out, func(a, b fileFault) int { return a.line - b.line })
	return out
}

// mappingOf checks the keys and values of the mapping n. If open is true, unknown keys are allowed.
func (d *clusterDoc) mappingOf(at string, n *yaml.Node, open bool) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		p := strings.TrimPrefix(at+"."+key.Value, ".")
		k := keyAt(p)
		if k == nil {
			if !open {
				d.note(key, naming, "%s", unknownKey(at, key.Value))
			}
			continue
		}
		d.valueOf(k, p, value)
	}
}

func unknownKey(at, name string) string {
	where := strings.TrimSuffix("v2."+at, ".")
	out := "upstream does not support the key " + shownWord(name) + " under " + where + " and ignores it"
	if m := likelyMeant(at, name); m != "" {
		out += ": " + m
	}
	return out
}

// valueOf checks n. If n is a list or a mapping, valueOf also checks the values in it.
func (d *clusterDoc) valueOf(k *clusterKey, p string, n *yaml.Node) {
	if n.Tag == "!!null" && n.Kind == yaml.ScalarNode {
		d.null(k, p, n)
		return
	}
	if says := k.form.misfit(n); says != "" {
		d.note(n, typing, "v2.%s %s", p, says)
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		if k.form == mapping {
			d.mappingOf(p, n, k.open)
		}
	case yaml.SequenceNode:
		if item := keyAt(p + "[]"); item != nil {
			for _, c := range n.Content {
				d.valueOf(item, p+"[]", c)
			}
		}
	}
}

// null records a fault for a key whose value is null, unless null is harmless for the key. Upstream does not replace
// null with its default.
func (d *clusterDoc) null(k *clusterKey, p string, n *yaml.Node) {
	if k.form == anyForm || p == "job.context" || p == "job.server.cert_authority_file" || p == "login" ||
		p == "login.host" {
		return
	}
	d.note(
		n, typing,
		"v2.%s has no value: upstream then uses an empty value instead of the default. Set a value, or remove the line",
		p,
	)
}

// booleans lists the words that Ruby's YAML 1.1 parser reads as true or false.
var booleans = []string{"true", "false", "yes", "no", "on", "off"}

// misfit returns why n is not of type f, or "" if it is.
func (f valueForm) misfit(n *yaml.Node) string {
	scalar := n.Kind == yaml.ScalarNode
	switch f {
	case flag:
		switch {
		case !scalar:
			return "must be true or false"
		case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
			return "is a quoted string, which Ruby always treats as true: remove the quotes"
		case !slices.Contains(booleans, strings.ToLower(n.Value)):
			return "is " + shownWord(n.Value) + ", but must be true or false"
		}
	case words, file:
		switch {
		case !scalar:
			return "must be a string, not a list or a mapping"
		case n.Style == 0 && slices.Contains(booleans, strings.ToLower(n.Value)):
			return "is " + n.Value + " without quotes, which is not a string in Ruby: put it in quotes"
		case n.Style == 0 && (n.Tag == "!!int" || n.Tag == "!!float"):
			return "is a number: put it in quotes"
		}
	case listForm:
		if n.Kind != yaml.SequenceNode {
			return "must be a list"
		}
	case mapping:
		if n.Kind != yaml.MappingNode {
			return "must be a mapping: are the lines below it indented?"
		}
	case anyForm:
	}
	return ""
}

// mountKeys maps each mount type to the keys that upstream reads. Upstream ignores all other keys of a mount.
var mountKeys = map[string][]string{
	"host": {"type", "name", "host_type", "path", "destination_path"},
	"nfs":  {"type", "name", "host", "path", "destination_path"},
}

// hostTypes lists the hostPath types in upstream's documentation.
var hostTypes = []string{
	"Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket", "CharDevice", "BlockDevice", "",
}

// mountsOf checks the mounts for faults such as duplicate names and relative paths. valueOf checks the types of the
// values in the mounts.
func (d *clusterDoc) mountsOf(n *yaml.Node) {
	if n == nil || n.Kind != yaml.SequenceNode {
		return
	}
	names := map[string]int{}
	for _, m := range n.Content {
		if m.Kind != yaml.MappingNode {
			continue
		}
		d.mountOf(m)
		if _, name := entry(m, "name"); name != nil {
			if first := names[name.Value]; first != 0 {
				d.note(
					name, typing,
					"the mount name %s is already used in line %d: the API server rejects a pod with two volumes of the same name",
					shownWord(name.Value), first,
				)
			}
			names[name.Value] = name.Line
		}
	}
}

func (d *clusterDoc) mountOf(m *yaml.Node) {
	_, kind := entry(m, "type")
	if kind == nil {
		d.note(
			m, typing,
			"the mount has no type, so the pod gets a mount without a volume and the API server rejects the pod. Set the type "+
				"to host or nfs",
		)
		return
	}
	takes, known := mountKeys[kind.Value]
	if !known {
		d.note(
			kind, typing,
			"upstream does not support the mount type %s: the pod gets a mount without a volume, and the API server rejects "+
				"the pod. Use host or nfs",
			shownWord(kind.Value),
		)
		return
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		key, value := m.Content[i], m.Content[i+1]
		switch {
		case key.Value == "host_type" && !slices.Contains(hostTypes, value.Value):
			d.note(
				value, typing, "Kubernetes has no hostPath type %s: use Directory, File or Socket", shownWord(value.Value),
			)
		case (key.Value == "path" || key.Value == "destination_path") && !path.IsAbs(value.Value):
			d.note(value, typing, "%s of the mount is %s, not an absolute path", key.Value, shownWord(value.Value))
		}
	}
	for _, name := range takes {
		if _, value := entry(m, name); value == nil && name != "host_type" {
			d.note(m, typing, "the mount of type %s has no %s", kind.Value, name)
		}
	}
}

// mountTypes returns the types of all mounts, sorted and without duplicates.
func (d clusterDoc) mountTypes() []string {
	var out []string
	if n := d.at("job.mounts"); n != nil && n.Kind == yaml.SequenceNode {
		for _, m := range n.Content {
			if _, kind := entry(m, "type"); kind != nil {
				out = append(out, kind.Value)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
