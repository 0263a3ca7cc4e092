// Resource pools and their validation (crc/api.spec.yaml and the models generated from it in crc/apispec.py;
// crc/core.py validate_resource_pool_post, validate_resource_pool_update; crc/orm.py ResourcePoolORM). Memory is in GB
// for quotas and in GiB for classes. The API compares the bare numbers.

package renkuapi

import (
	"maps"
	"regexp"
	"slices"
)

const (
	defaultPlatform = "linux/amd64"
	largestInt      = 2147483647
	quotaWidth      = 63 // varchar length of a quota's ID
)

var schedulingKeys = regexp.MustCompile(`^[a-z0-9A-Z][a-z0-9A-Z-_./]*[a-z0-9A-Z]$`)

var affinitySchema = schema{
	{name: "key", kind: "string", required: true, low: 3, high: 63, pattern: schedulingKeys},
	{name: "required_during_scheduling", kind: "boolean"},
}

var classSchema = schema{
	{name: "name", kind: "string", required: true, low: 5, high: 40},
	{name: "cpu", kind: "number", required: true, above: true},
	{name: "memory", kind: "integer", required: true, above: true, high: largestInt},
	{name: "gpu", kind: "integer", required: true, high: largestInt},
	{name: "max_storage", kind: "integer", required: true, above: true, high: largestInt},
	{name: "default_storage", kind: "integer", required: true, above: true, high: largestInt},
	{name: "default", kind: "boolean", required: true},
	{name: "tolerations", kind: "array", low: 3, high: 63, pattern: schedulingKeys},
	{name: "node_affinities", kind: "array", fields: affinitySchema},
	{name: "quota_enforced", kind: "boolean"},
}

var quotaSchema = schema{
	{name: "cpu", kind: "number", required: true, above: true},
	{name: "memory", kind: "integer", required: true, above: true, high: largestInt},
	{name: "gpu", kind: "integer", required: true, high: largestInt},
	{name: "id", kind: "string", low: 5},
}

// poolSchemaWith returns the schema of a pool. classes and quota are the schemas of its parts.
func poolSchemaWith(classes, quota schema) schema {
	return schema{
		{name: "name", kind: "string", required: true, low: 5, high: 40},
		{name: "public", kind: "boolean", required: true},
		{name: "default", kind: "boolean", required: true},
		{name: "classes", kind: "array", required: true, fields: classes},
		{name: "quota", kind: "object", fields: quota},
		{name: "cluster_id", kind: "string", pattern: ulid},
		{name: "platform", kind: "string", values: []string{"linux/amd64", "linux/arm64"}},
		{name: "idle_threshold", kind: "integer", high: largestInt},
		{name: "hibernation_threshold", kind: "integer", high: largestInt},
		{name: "hibernation_warning_period", kind: "integer", high: largestInt},
		{name: "cpu_limit_factor", kind: "number", low: 1, high: 100},
		{name: "remote", kind: "object"},
	}
}

var (
	poolSchema      = poolSchemaWith(classSchema, quotaSchema)
	poolPutSchema   = poolSchemaWith(append(classID, classSchema...), quotaPutSchema).require("platform").removable()
	poolPatchSchema = poolSchemaWith(append(classID, classSchema.optional()...), quotaPatchSchema).optional().removable()

	classID          = schema{{name: "id", kind: "integer", required: true}} // for changes to a pool
	quotaPutSchema   = quotaSchema.require("id")
	quotaPatchSchema = quotaSchema.without("id").optional()
)

// removable returns a schema that also accepts 0 for cpu_limit_factor, which removes the factor.
func (s schema) removable() schema {
	all := slices.Clone(s)
	for i := range all {
		if all[i].name == "cpu_limit_factor" {
			all[i].low = 0
		}
	}
	return all
}

// affinity selects nodes with a label.
type affinity struct {
	Key      string `json:"key"`
	Required bool   `json:"required_during_scheduling"`
}

// class is a resource class, which is the size of a session. Memory is in GiB and storage in GB.
type class struct {
	ID             int        `json:"id"`
	Name           string     `json:"name"`
	CPU            float64    `json:"cpu"`
	Memory         int        `json:"memory"`
	GPU            int        `json:"gpu"`
	MaxStorage     int        `json:"max_storage"`
	DefaultStorage int        `json:"default_storage"`
	Default        bool       `json:"default"`
	Tolerations    []string   `json:"tolerations"`
	Affinities     []affinity `json:"node_affinities"`
	QuotaEnforced  bool       `json:"quota_enforced"`
	Matching       *bool      `json:"matching,omitempty"` // only in lists
}

// quota limits the total resources of a pool's sessions. Memory is in GB.
type quota struct {
	CPU    float64 `json:"cpu"`
	Memory int     `json:"memory"`
	GPU    int     `json:"gpu"`
	ID     string  `json:"id"`
}

// pool is a row in the resource pools table. Its JSON tags are the keys in requests.
type pool struct {
	ID          int            `json:"-"`
	Name        string         `json:"name"`
	Public      bool           `json:"public"`
	Default     bool           `json:"default"`
	Platform    string         `json:"platform"`
	Idle        int            `json:"idle_threshold"` // seconds; 0 means no limit
	Hibernation int            `json:"hibernation_threshold"`
	Warning     int            `json:"hibernation_warning_period"`
	CPULimit    float64        `json:"cpu_limit_factor"` // 0 means no factor
	Remote      map[string]any `json:"remote"`           // configuration of FirecREST or Run:ai
	Cluster     string         `json:"cluster_id"`       // "" means the local cluster
	Quota       string         `json:"-"`                // ID of the quota, or ""; the numbers are in the cluster
	Classes     []class        `json:"-"`
	Users       []poolUser     `json:"-"`
	Members     []poolMember   `json:"-"`
}

func (p *pool) clone() *pool {
	other := *p
	other.Remote = maps.Clone(p.Remote)
	other.Classes, other.Users, other.Members = slices.Clone(p.Classes), slices.Clone(p.Users), slices.Clone(p.Members)
	return &other
}

// rules checks what the schema cannot. q is the pool's quota, or nil.
func (p *pool) rules(q *quota) error {
	defaults := 0
	for _, c := range p.Classes {
		if c.Default {
			defaults++
		}
		if c.DefaultStorage > c.MaxStorage {
			return invalid("The default storage cannot be larger than the max allowable storage.")
		}
		if q != nil && (c.CPU > q.CPU || c.Memory > q.Memory || c.GPU > q.GPU) {
			return invalid("The resource class with name %s is not compatible with the quota.", c.Name)
		}
	}
	switch {
	case defaults != 1:
		return invalid("One default class is required in each resource pool, but there are %d.", defaults)
	case p.Default && !p.Public:
		return invalid("The default resource pool has to be public.")
	case p.Default && q != nil:
		return invalid("A default resource pool cannot have a quota.")
	case p.Remote != nil && (p.Default || p.Public):
		return invalid("A remote resource pool can be neither public nor the default.")
	case p.Hibernation > 0 && p.Warning >= p.Hibernation:
		return invalid("The hibernation warning period has to be shorter than the hibernation threshold.")
	}
	return nil
}

// insertPool assigns IDs to a pool and its classes, and stores the pool. The caller must hold the lock, unless the
// registry is not in use yet.
func (r *registry) insertPool(p *pool) {
	p.ID = r.nextPool
	r.nextPool++
	r.numberClasses(p)
	r.pools[p.ID] = p
}

func (r *registry) numberClasses(p *pool) {
	for i := range p.Classes {
		c := &p.Classes[i]
		if c.ID == 0 {
			c.ID = r.nextClass
			r.nextClass++
		}
		if c.Tolerations == nil {
			c.Tolerations = []string{}
		}
		if c.Affinities == nil {
			c.Affinities = []affinity{}
		}
	}
}
