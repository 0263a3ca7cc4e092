package clean_test

import (
	"testing"

	"carrick/cluster/clean"
)

func TestName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"view":                          "view",
		"system:node-bootstrapper":      "system:node-bootstrapper",
		"Domain Users":                  "Domain Users",
		"Jürgen":                        "Jürgen",
		"x\n  remote: leave Role other": `"x\n  remote: leave Role other"`,
		"ad\u200bmin":                   `"ad\u200bmin"`,
		"ad\u3164min":                   `"ad\u3164min"`,
		"a\tb":                          `"a\tb"`,
		"\x1b[2Jcleared":                `"\x1b[2Jcleared"`,
		"\u202egnp":                     `"\u202egnp"`,
		"two\u2800words":                `"two\u2800words"`,
	} {
		if got := clean.Name(name); got != want {
			t.Errorf("Name(%q) = %s, want %s", name, got, want)
		}
	}
}
