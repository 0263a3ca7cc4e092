package check

import (
	"cmp"
	"fmt"
	"strings"
)

// Some joins the first three names and the number of further names, such as "a, b, c and 4 more".
func Some(names []string) string { return FirstOf(names, 3, ", ") }

// FirstOf joins words with a separator. If there are more words than most, it joins only the first ones and appends the
// number of the others.
func FirstOf(words []string, most int, separator string) string {
	if len(words) <= most {
		return strings.Join(words, separator)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:most], separator), len(words)-most)
}

// OrNone joins names, such as "a, b". If there are no names, it returns "none".
func OrNone(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }
