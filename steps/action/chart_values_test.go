package action

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster/diff"
	"carrick/cluster/masked"
	"carrick/steps"
)

func TestSecretValuesOfAChartAreNotShown(t *testing.T) {
	given := map[string]any{
		"n": 1, "names": []string{"a"},
		"deep": map[string]any{"password": masked.New("correct-horse"), "list": []any{masked.New("battery-staple"), true}},
	}
	plain, open, secrets := revealed(given)
	if d := cmp.Diff(map[string]any{
		"n": int64(1), "names": []any{"a"},
		"deep": map[string]any{"password": "correct-horse", "list": []any{"battery-staple", true}},
	}, plain); d != "" {
		t.Error(d)
	}
	shown := diff.Objects(nil, shownRelease("tiny", "1.0.0", open))
	items := []steps.Item{{Diff: "+  password: correct-horse\n+  base: Y29ycmVjdC1ob3JzZQ==\n", Note: "battery-staple"}}
	hide(items, secrets)
	err := scrubbed(fmt.Errorf("it was refused: %q", "correct-horse"), secrets)
	for _, text := range []string{shown, items[0].Diff + items[0].Note, err.Error()} {
		if strings.Contains(text, "correct-horse") || strings.Contains(text, "battery-staple") ||
			strings.Contains(text, "Y29ycmVj") || !strings.Contains(text, "(hidden)") {
			t.Error(text)
		}
	}
	if plain := errors.New("x"); scrubbed(plain, secrets) != plain || scrubbed(nil, secrets) != nil {
		t.Error("an error without a secret is another one")
	}
}

// Of another user's values, a diff shows only those that this link also sets and that are not secret.
func TestValuesThatStandAreShownSparingly(t *testing.T) {
	theirs := map[string]any{
		"a": "x", "b.c": float64(2), "deep.password": "correct-horse", "deep.open": true,
		"table": map[string]any{"secret": "s"},
	}
	given := func(path string) (any, bool) {
		v, ok := theirs[strings.ReplaceAll(path, `\.`, ".")]
		return v, ok
	}
	got := sharedValues(
		given,
		map[string]any{
			"a": "y", "b.c": 3, "new": 1, "table": "text", "deep": map[string]any{"password": hiddenValue, "open": false},
		},
		"",
	)
	want := map[string]any{
		"a": "x", "b.c": float64(2), "table": hiddenValue, "deep": map[string]any{"password": hiddenValue, "open": true},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
