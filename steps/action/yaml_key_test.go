package action_test

import (
	"testing"

	"carrick/steps/action"
)

func TestSetYAMLLeavesTheRestToTheLetter(t *testing.T) {
	const text = "# ours\na.b/c: \"x\"   # why\n\nlist:\n  - 1\n\n  - 2\nend: |\n  two\n  lines\n\n"
	for situation, c := range map[string]struct {
		key   string
		value any
		want  string
	}{
		"in its place, with its comment": {
			"a.b/c", "y", "# ours\na.b/c: \"y\" # why\n\nlist:\n  - 1\n\n  - 2\nend: |\n  two\n  lines\n\n",
		},
		"at the end": {
			"d/e", "z", "# ours\na.b/c: \"x\"   # why\n\nlist:\n  - 1\n\n  - 2\nend: |\n  two\n  lines\nd/e: \"z\"\n\n",
		},
		"in the place of many lines": {
			"list", true, "# ours\na.b/c: \"x\"   # why\n\nlist: true\nend: |\n  two\n  lines\n\n",
		},
		"away":                {"end", nil, "# ours\na.b/c: \"x\"   # why\n\nlist:\n  - 1\n\n  - 2\n\n"},
		"away, and not there": {"none", nil, text},
		"many lines": {
			"a.b/c", "1\n2\n", "# ours\na.b/c: |\n  1\n  2\n\nlist:\n  - 1\n\n  - 2\nend: |\n  two\n  lines\n\n",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			got, err := action.SetYAML(text, c.key, c.value)
			if err != nil || got != c.want {
				t.Errorf("%v\n%s\nwant\n%s", err, got, c.want)
			}
		})
	}
	if got, err := action.SetYAML("a: [", "a", "b"); err == nil {
		t.Errorf("what is no YAML becomes %q", got)
	}
	if got, err := action.SetYAML("", "a", "b"); err != nil || got != "a: \"b\"\n" && got != "a: \"b\"" {
		t.Errorf("an empty text becomes %q, %v", got, err)
	}
}
