package renku

import (
	"io/fs"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"

	"carrick/steps"
)

// examplePool returns the published guide's example pool as YAML with comments. Some values come
// from the other answers.
func examplePool(e steps.Env) (any, string) {
	if e.Assets == nil {
		return nil, ""
	}
	data, err := fs.ReadFile(e.Assets, poolAsset)
	if err != nil {
		return nil, ""
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil || len(doc.Content) == 0 {
		return nil, ""
	}
	fillPool(e, doc.Content[0])
	var b strings.Builder
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(&doc); err != nil {
		return nil, ""
	}
	return b.String(), "from the published guide and your answers"
}

func fillPool(e steps.Env, p *yaml.Node) {
	if name := e.Answers.Text("cluster.name"); name != "" {
		put(p, "name", name)
	}
	if arch := e.Answers.Text("nodes.arch"); arch != "" {
		put(p, "platform", "linux/"+arch)
	}
	if ids := e.Answers.List("pools.quotas"); len(ids) > 0 {
		put(yamlValue(p, "quota"), "id", ids[0])
	}
	classes := yamlValue(p, "classes")
	if c, larger := biggest(e, classes); larger {
		n := &yaml.Node{}
		if n.Encode(c) == nil {
			classes.Content = append(classes.Content, n)
		}
	}
	if taints := e.Answers.List("nodes.tolerations"); len(taints) > 0 {
		for _, c := range classes.Content {
			put(c, "tolerations", taints)
		}
	}
}

// biggest returns the class that the answers class.cpu, class.memory and class.gpu describe. The
// bool is false if one of the given classes is at least as large.
func biggest(e steps.Env, classes *yaml.Node) (resourceClass, bool) {
	memory, err := resource.ParseQuantity(e.Answers.Text("class.memory"))
	if err != nil {
		return resourceClass{}, false
	}
	c := resourceClass{
		Name: "remote-large", CPU: cpus(e.Answers.Text("class.cpu")),
		Memory: math.Ceil(memory.AsApproximateFloat64() / (1 << 30)),
		GPU:    float64(e.Answers.Int("class.gpu")), Max: 4, Storage: 1,
	}
	var have []resourceClass
	if err := classes.Decode(&have); err != nil {
		return resourceClass{}, false
	}
	return c, !slices.ContainsFunc(
		have, func(h resourceClass) bool { return h.CPU >= c.CPU && h.Memory >= c.Memory && h.GPU >= c.GPU },
	)
}

// yamlValue returns the value of key in the mapping n, or an empty node if the key does not exist.
func yamlValue(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return &yaml.Node{}
}

// put sets a key of the mapping n. It keeps the line comment of an existing key.
func put(n *yaml.Node, key string, value any) {
	v := &yaml.Node{}
	if v.Encode(value) != nil {
		return // strings and lists of strings can always be encoded
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			v.LineComment = n.Content[i+1].LineComment
			n.Content[i+1] = v
			return
		}
	}
	k := &yaml.Node{}
	k.SetString(key)
	n.Content = append(n.Content, k, v)
}

// cpus converts a CPU quantity such as "500m" to a number of CPUs. It returns 0 if text is invalid.
func cpus(text string) float64 {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return 0 // Renku requires more than 0 CPUs, so pool-rules reports the class
	}
	return q.AsApproximateFloat64()
}
