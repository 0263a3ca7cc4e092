package chart

import (
	"slices"
	"testing"
)

func TestWhatAnUpgradeHasLost(t *testing.T) {
	defaults := tree{
		"nodeName": "virtual-node", "interlink": tree{"address": "", "port": float64(0), "ca": ""}, "list": []any{},
	}
	release := func(given tree) *Release { return &Release{inner: &inner{given: given, defaults: defaults}} }
	older := release(tree{
		"nodeName": "virtual-node", "interlink": tree{"address": "https://edge", "port": float64(30443), "ca": "x"},
		"extra": tree{"deep": tree{"er": true}},
	})
	for _, tc := range []struct {
		name  string
		given tree
		want  []string
	}{
		{"the same", older.inner.given, nil},
		{
			"--set of another one",
			tree{"interlink": tree{"ca": "y"}},
			[]string{"extra.deep.er", "interlink.address", "interlink.port"},
		},
		{"nothing at all", tree{}, []string{"extra.deep.er", "interlink.address", "interlink.ca", "interlink.port"}},
		{"taken away with null", tree{"extra": nil, "interlink": nil}, nil},
		{"another shape", tree{"extra": "text", "interlink": tree{"address": "a", "port": float64(1), "ca": ""}}, nil},
	} {
		if got := release(tc.given).Lost(older); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
	if got := release(nil).Lost(nil); got != nil {
		t.Errorf("of no older one: %v", got)
	}
}
