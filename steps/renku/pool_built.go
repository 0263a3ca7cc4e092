package renku

import (
	"fmt"
	"io/fs"
	"math"
	"slices"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"

	"carrick/steps"
)

// builtPool puts the answers into the example pool.
func builtPool(e steps.Env) (described, error) {
	data, err := fs.ReadFile(e.Assets, poolAsset)
	if err != nil {
		return described{}, fmt.Errorf("read asset: %w", err)
	}
	var p map[string]any
	if err := yaml.Unmarshal(data, &p); err != nil {
		return described{}, fmt.Errorf("asset %s: %w", poolAsset, err)
	}
	p["name"], p["public"], p["platform"] = e.Answers.Text("pool.name"), e.Answers.Bool("pool.public"), "linux/"+e.Answers.Text("nodes.arch")
	q := map[string]any{"cpu": cpus(e.Answers.Text("pool.cpu")), "memory": e.Answers.Int("pool.memory"), "gpu": e.Answers.Int("pool.gpu")}
	if ids := e.Answers.List("pools.quotas"); len(ids) > 0 {
		q["id"] = ids[0]
	}
	p["quota"] = q
	classes, _ := p["classes"].([]any)
	p["classes"] = withBiggest(e, classes)
	built, err := yaml.Marshal(p)
	if err != nil {
		return described{}, err
	}
	return readPool(built)
}

// withBiggest adds the class of the answers where it is larger than all
// others, and lets each tolerate what the nodes are tainted with.
func withBiggest(e steps.Env, classes []any) []any {
	cpu, gpu := cpus(e.Answers.Text("class.cpu")), e.Answers.Int("class.gpu")
	memory, err := resource.ParseQuantity(e.Answers.Text("class.memory"))
	gib := int(math.Ceil(memory.AsApproximateFloat64() / (1 << 30)))
	larger := err == nil && !slices.ContainsFunc(classes, func(c any) bool {
		var have class
		b, err := yaml.Marshal(c)
		return err != nil || yaml.Unmarshal(b, &have) != nil || (have.CPU >= cpu && have.Memory >= float64(gib) && have.GPU >= float64(gpu))
	})
	if larger {
		classes = append(classes, map[string]any{
			"name": "remote-large", "cpu": cpu, "memory": gib, "gpu": gpu, "max_storage": 4, "default_storage": 1, "default": false,
		})
	}
	if taints := e.Answers.List("nodes.tolerations"); len(taints) > 0 {
		for _, c := range classes {
			if m, ok := c.(map[string]any); ok {
				m["tolerations"] = taints
			}
		}
	}
	return classes
}

// cpus is a quantity as Renku counts it.
func cpus(text string) float64 {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return 0 // which is refused as too little
	}
	return q.AsApproximateFloat64()
}
