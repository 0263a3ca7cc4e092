package renku

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"go.yaml.in/yaml/v3"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

// poolAsset is the file with the published guide's example pool.
const poolAsset = "pool.yaml"

// pool contains the fields of a resource pool that carrick reads.
type pool struct {
	ID       int             `json:"id" yaml:"-"`
	Name     string          `json:"name" yaml:"name"`
	Public   bool            `json:"public" yaml:"public"`
	Default  bool            `json:"default" yaml:"default"`
	Platform string          `json:"platform" yaml:"platform"`
	Factor   float64         `json:"cpu_limit_factor" yaml:"cpu_limit_factor"`
	Hibernes int             `json:"hibernation_threshold" yaml:"hibernation_threshold"`           // seconds; 0: never
	Warns    int             `json:"hibernation_warning_period" yaml:"hibernation_warning_period"` // in seconds
	Cluster  clusterOf       `json:"cluster" yaml:"-"`
	Quota    *quota          `json:"quota" yaml:"quota"`
	Classes  []resourceClass `json:"classes" yaml:"classes"`
}

type clusterOf struct {
	ID string `json:"id"` // "": the local cluster
}

// quota limits all sessions of a pool together. Memory is in GB.
type quota struct {
	CPU    float64 `json:"cpu" yaml:"cpu"`
	Memory float64 `json:"memory" yaml:"memory"`
	GPU    float64 `json:"gpu" yaml:"gpu"`
	ID     string  `json:"id" yaml:"id"`
}

// resourceClass is the size of one session. Memory is in GiB, and storage is in GB.
type resourceClass struct {
	Name    string  `json:"name" yaml:"name"`
	CPU     float64 `json:"cpu" yaml:"cpu"`
	Memory  float64 `json:"memory" yaml:"memory"`
	GPU     float64 `json:"gpu" yaml:"gpu"`
	Max     float64 `json:"max_storage" yaml:"max_storage"`
	Storage float64 `json:"default_storage" yaml:"default_storage"`
	Default bool    `json:"default" yaml:"default"`
}

// described is the pool in pool.spec together with the rules that it violates.
type described struct {
	pool
	payload map[string]any // the body of POST /resource_pools, without the cluster
	faults  []poolFault
}

// problems returns the faults as messages with line numbers.
func (d described) problems() []string {
	var out []string
	for _, f := range d.faults {
		if f.line > 0 {
			f.text = fmt.Sprintf("line %d: %s", f.line, f.text)
		}
		out = append(out, clean.Text(f.text))
	}
	return out
}

// readPool parses a pool in YAML or JSON and collects all faults. It returns an error if data is
// not one YAML document.
func readPool(data []byte) (described, error) {
	var doc yaml.Node
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the text is empty")
		}
		return described{}, err
	}
	if dec.Decode(&yaml.Node{}) == nil {
		return described{}, errors.New("the text has more than one YAML document, but only one pool is allowed")
	}
	d := described{}
	root := doc.Content[0]
	faults, values := walk("the pool", root, poolFields)
	d.faults = faults
	if v := values["quota"]; v != nil {
		faults, _ := walk("the quota", v, quotaFields)
		d.faults = append(d.faults, faults...)
	}
	if v := values["classes"]; v != nil {
		d.faults = append(d.faults, walkClasses(v)...)
	}
	if len(d.faults) > 0 {
		return d, nil
	}
	if err := errors.Join(root.Decode(&d.pool), root.Decode(&d.payload)); err != nil {
		return d, err
	}
	d.payload = plainJSON(d.payload)
	delete(d.payload, "cluster_id")
	d.faults = d.judge(values)
	return d, nil
}

func walkClasses(n *yaml.Node) (out []poolFault) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return []poolFault{{n.Line, "classes must be a list of at least one class"}}
	}
	for i, c := range n.Content {
		faults, _ := walk(fmt.Sprintf("class %d", i+1), c, classFields)
		out = append(out, faults...)
	}
	return out
}

// judge checks the rules that involve several values of the pool.
func (d *described) judge(values map[string]*yaml.Node) (out []poolFault) {
	at := func(key string) int {
		if values[key] == nil {
			return 0
		}
		return values[key].Line
	}
	add := func(line int, format string, args ...any) {
		out = append(out, poolFault{line, fmt.Sprintf(format, args...)})
	}
	if d.Default && !d.Public {
		add(at("default"), "a default pool must be public")
	}
	if d.Default && d.Quota != nil {
		add(at("quota"), "a default pool cannot have a quota")
	}
	if d.Warns > 0 && d.Warns >= d.Hibernes {
		add(
			at("hibernation_warning_period"),
			"hibernation_warning_period (%d s) must be shorter than hibernation_threshold (%d s)", d.Warns,
			d.Hibernes,
		)
	}
	var defaults []string
	for i, c := range d.Classes {
		line := values["classes"].Content[i].Line
		if c.Default {
			defaults = append(defaults, c.Name)
		}
		if c.Storage > c.Max {
			add(line, "class %s has default_storage %g GB, but max_storage %g GB", c.Name, c.Storage, c.Max)
		}
		if q := d.Quota; q != nil && (c.CPU > q.CPU || c.Memory > q.Memory || c.GPU > q.GPU) {
			add(
				line, "class %s exceeds the quota: %g CPUs of %g, memory %g of %g, %g GPUs of %g", c.Name, c.CPU, q.CPU,
				c.Memory, q.Memory, c.GPU, q.GPU,
			)
		}
	}
	if len(defaults) != 1 {
		add(
			at("classes"), "exactly one class must be the default, but %d classes are: %s", len(defaults),
			check.OrNone(defaults),
		)
	}
	return out
}

func checkPool(text string) error {
	d, err := readPool([]byte(text))
	if err != nil {
		return err
	}
	if bad := d.problems(); len(bad) > 0 {
		return errors.New(strings.Join(bad, "; "))
	}
	return nil
}

// thePool parses pool.spec. It returns an AbsentError if pool.spec is empty. A parse error
// becomes a fault of the pool.
func thePool(e steps.Env) (described, error) {
	text := e.Answers.Text("pool.spec")
	if text == "" {
		return described{}, steps.Absent("pool.spec is not set")
	}
	d, err := readPool([]byte(text))
	if err != nil {
		d.faults = append(d.faults, poolFault{0, "pool.spec is not a pool in YAML or JSON: " + err.Error()})
	}
	return d, nil
}

// tooTight returns a message for each class for which the quota is too small for even one session
// with its sidecars. Renku accepts such a class, but its sessions can never start. Memory is in GB
// in quotas but in GiB in classes. The sidecars are estimated at 0.2 CPUs and 0.3 GB.
func (d described) tooTight() []string {
	var out []string
	for _, c := range d.Classes {
		q := d.Quota
		if q == nil {
			return nil
		}
		if need := c.Memory*1.0737 + 0.3; need > q.Memory {
			out = append(
				out,
				fmt.Sprintf(
					"class %s needs %.1f GB (%g GiB plus sidecars), but the quota has %g GB", c.Name, need, c.Memory, q.Memory,
				),
			)
		}
		if need := c.CPU + 0.2; need > math.Ceil(q.CPU) {
			out = append(
				out,
				fmt.Sprintf("class %s needs %g CPUs including sidecars, but the quota has %g", c.Name, need, math.Ceil(q.CPU)),
			)
		}
	}
	return out
}
