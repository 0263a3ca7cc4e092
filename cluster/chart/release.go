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

// Statuses of a release, as Helm writes them (helm.sh/helm/v4/pkg/release/common/status.go).
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

// Dependency is a subchart that a chart declares.
type Dependency struct {
	Name, Version, Repository string
	Condition                 string // value that enables the subchart; "": always enabled
	Alias                     string
}

// Release is one revision of an installed chart. Its strings are safe to display. Values, manifest and hooks can
// contain passwords. They are behind a pointer that fmt and encoders do not follow.
type Release struct {
	Name, Namespace string
	Chart           string // the chart's name
	Version         string // the chart's version: "0.30.2"
	AppVersion      string
	Status          string // one of the constants, or a status of a newer Helm
	Description     string // Helm's last message, such as the cause of a failure
	Revision        int    // starts at 1
	Changed         time.Time
	Dependencies    []Dependency
	Notes           string

	Labels  map[string]string // labels of the release's Secret
	Created time.Time         // creation time of that Secret
	UID     types.UID         // UID of that Secret

	inner *inner
}

// inner contains the fields that must not be printed.
type inner struct {
	given    map[string]any // values that the user set
	defaults map[string]any // the chart's values.yaml
	manifest string
	how      string   // apply method: "ssa" (server-side), "csa" (client-side); "": "csa"
	crds     []string // from the chart's crds directory; Helm does not store those of subcharts
	hooks    []*release.Hook
	salt     string // value of saltKey in the release's Secret
}

// Pending reports whether a Helm operation was interrupted or is still running.
func (r *Release) Pending() bool { return strings.HasPrefix(r.Status, "pending-") }

// Value returns the value at a path such as "dataService.secretName": the user's value, or else the chart's default. A
// dot in a key is written as `\.`. ok is false if neither value exists, or if the user removed the default with null.
// Maps and lists are shared, so callers must not change them.
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

// Given returns the value that the user set at the given path, without the chart's default.
func (r *Release) Given(path string) (value any, ok bool) {
	if r.inner == nil {
		return nil, false
	}
	v, found, _ := walk(r.inner.given, splitPath(path))
	return v, found
}

// splitPath splits a path at its dots, but not at `\.`.
func splitPath(path string) []string {
	const kept = "\x00"
	keys := strings.Split(strings.ReplaceAll(path, `\.`, kept), ".")
	for i := range keys {
		keys[i] = strings.ReplaceAll(keys[i], kept, ".")
	}
	return keys
}

// walk returns the value at a path of keys in nested maps. If blocked is true, the path contains a value that is not a
// map. Such a value hides all defaults below it.
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

// merged returns the values in under, overridden by the values in over. As in Helm, maps are merged key by key, and
// null removes a key.
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

// Content returns a hash of a release's chart, values, objects and CustomResourceDefinitions, but not of its hooks and
// status. The hash includes the salt. Without the salt, anyone who can see the hash could guess secret values.
func (r *Release) Content() string {
	h := sha256.New()
	_ = json.NewEncoder(h).Encode([]any{r.inner.salt, r.Chart, r.Version, r.inner.given, r.inner.manifest, r.inner.crds})
	return hex.EncodeToString(h.Sum(nil))
}

// Secret returns the name of the Secret in which Helm stores the release.
func (r *Release) Secret() string { return secretName(r.Name, r.Revision) }

// SameVersion reports whether the release's chart has the given version.
func (r *Release) SameVersion(version string) bool { return sameVersion(r.Version, version) }
