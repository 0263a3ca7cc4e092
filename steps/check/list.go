package check

import (
	"cmp"
	"fmt"
	"strings"
)

// Some joins the first three names: "a, b, c and 4 more".
func Some(names []string) string { return FirstOf(names, 3, ", ") }

// FirstOf joins the first words, at most the given number, with a separator, and appends the number of the others.
func FirstOf(words []string, most int, separator string) string {
	if len(words) <= most {
		return strings.Join(words, separator)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:most], separator), len(words)-most)
}

// OrNone joins names, such as "a, b". It returns "none" if there are none.
func OrNone(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }
