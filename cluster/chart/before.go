package chart

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
)

// Before returns the revision that r replaced. It returns ErrNoRelease if r is the first revision, or if Helm has
// deleted the older revision.
func Before(ctx context.Context, c *cluster.Cluster, r *Release) (*Release, error) {
	if r.Revision < 2 {
		return nil, ErrNoRelease
	}
	s, err := c.Secret(ctx, r.Namespace, secretName(r.Name, r.Revision-1), storageKey)
	if apierrors.IsNotFound(err) {
		return nil, errors.Join(ErrNoRelease, err)
	}
	if err != nil {
		return nil, err
	}
	return unpackedRelease(s)
}

// Lost returns the paths of values that the user set in the older revision but not in r. The chart's defaults apply to
// them again. Lost omits values that equal the default and values that the user removed with null.
func (r *Release) Lost(older *Release) []string {
	if r.inner == nil || older == nil || older.inner == nil {
		return nil
	}
	return lost(older.inner.given, r.inner.given, r.inner.defaults, "")
}

func lost(was, is, defaults map[string]any, above string) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(was)) {
		path := above + key
		now, given := is[key]
		before, table := was[key].(map[string]any)
		under, _ := defaults[key].(map[string]any)
		switch {
		case table && (!given || isTable(now)):
			inner, _ := now.(map[string]any)
			out = append(out, lost(before, inner, under, path+".")...)
		case given || reflect.DeepEqual(was[key], defaults[key]):
		default:
			out = append(out, path)
		}
	}
	return out
}

func isTable(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}
