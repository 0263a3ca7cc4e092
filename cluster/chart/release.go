package chart

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Statuses of a release, as Helm writes them
// (helm.sh/helm/v4/pkg/release/common/status.go).
const (
	Deployed        = "deployed"
	Failed          = "failed"
	Superseded      = "superseded"
	Uninstalled     = "uninstalled"
	Uninstalling    = "uninstalling"
	PendingInstall  = "pending-install"
	PendingUpgrade  = "pending-upgrade"
	PendingRollback = "pending-rollback"
)

// Dependency is a subchart that a chart names.
type Dependency struct {
	Name, Version, Repository string
	Condition                 string // the value that turns it on: "csi-rclone.enabled"; "": always on
	Alias                     string
}

// Release is one revision of an installed chart. Strings are cleaned for the
// screen. Values, the manifest and hooks may hold passwords, so they stand
// behind a pointer that no printing and no encoding follows.
type Release struct {
	Name, Namespace string
	Chart           string // the chart's name
	Version         string // the chart's version: "0.30.2"
	AppVersion      string
	Status          string // one of the constants, or what a newer Helm says
	Description     string // Helm's last words about it: why it failed
	Revision        int    // from 1
	Changed         time.Time
	Dependencies    []Dependency
	Notes           string

	Labels  map[string]string // of the Secret that holds the release
	Created time.Time         // of that Secret
	UID     types.UID         // of that Secret

	inner *inner
}

// inner is what must not be printed.
type inner struct {
	given    map[string]any // what the user set
	defaults map[string]any // the chart's values.yaml
	manifest string
	how      string   // "ssa", "csa"; "" is the latter
	crds     []string // of its crds folder; those of subcharts Helm does not keep
	hooks    []*release.Hook
	salt     string // in the Secret, beside the release
}

// Pending tells whether Helm was stopped in the middle of an operation, or
// still is at it.
func (r *Release) Pending() bool { return strings.HasPrefix(r.Status, "pending-") }

// Value is the value at a path such as "dataService.secretName": what the user
// gave, else the chart's default. A key with a dot in it is written `a\.b`. ok
// is false where neither has it, and where the user took the default away with
// null. Maps and lists are shared: callers must not change them.
func (r *Release) Value(path string) (value any, ok bool) {
	if r.inner == nil {
		return nil, false
	}
	keys := splitPath(path)
	v, found, blocked := walk(r.inner.given, keys)
	if blocked || (found && v == nil) {
		return nil, false
	}
	if _, table := v.(map[string]any); found && !table {
		return v, true
	}
	d, hasDefault, _ := walk(r.inner.defaults, keys)
	switch {
	case !found:
		return d, hasDefault && d != nil
	case hasDefault:
		if under, table := d.(map[string]any); table {
			return merged(v.(map[string]any), under), true
		}
	}
	return v, true
}

// Given is the value at a path that the user set, without the chart's default.
func (r *Release) Given(path string) (value any, ok bool) {
	if r.inner == nil {
		return nil, false
	}
	v, found, _ := walk(r.inner.given, splitPath(path))
	return v, found
}

// splitPath cuts a path at its dots, but not at `\.`.
func splitPath(path string) []string {
	const kept = "\x00"
	keys := strings.Split(strings.ReplaceAll(path, `\.`, kept), ".")
	for i := range keys {
		keys[i] = strings.ReplaceAll(keys[i], kept, ".")
	}
	return keys
}

// walk goes down a tree of tables. blocked: the way ends at something that is
// no table, which hides whatever defaults there are below it.
func walk(table map[string]any, keys []string) (value any, found, blocked bool) {
	for i, key := range keys {
		v, ok := table[key]
		if !ok {
			return nil, false, false
		}
		if i == len(keys)-1 {
			return v, true, false
		}
		next, isTable := v.(map[string]any)
		if !isTable {
			return nil, false, true
		}
		table = next
	}
	return nil, false, false
}

// merged is over laid on under, as Helm does: tables key by key, null takes a
// key away.
func merged(over, under map[string]any) map[string]any {
	out := make(map[string]any, len(over)+len(under))
	for k, v := range under {
		if v != nil {
			out[k] = v
		}
	}
	for k, v := range over {
		below, belowIs := out[k].(map[string]any)
		table, is := v.(map[string]any)
		switch {
		case v == nil:
			delete(out, k)
		case is && belowIs:
			out[k] = merged(table, below)
		default:
			out[k] = v
		}
	}
	return out
}

// Content tells what a release consists of, its chart, values, objects and definitions, from anything else. Its hooks
// and its status are no part of that. The salt keeps whoever can see it from guessing secret values.
func (r *Release) Content() string {
	h := sha256.New()
	_ = json.NewEncoder(h).Encode([]any{r.inner.salt, r.Chart, r.Version, r.inner.given, r.inner.manifest, r.inner.crds})
	return hex.EncodeToString(h.Sum(nil))
}

// Secret is the name of the Secret that holds the release.
func (r *Release) Secret() string { return secretName(r.Name, r.Revision) }

// SameVersion tells whether the release is of that version of its chart.
func (r *Release) SameVersion(version string) bool { return sameVersion(r.Version, version) }
