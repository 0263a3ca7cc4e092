package vsphere

import (
	"strconv"
	"strings"
	"testing"
)

// celText keeps every name inside the quotes.
func TestATextOfCELHoldsWhateverItIsGiven(t *testing.T) {
	for _, name := range []string{"gold", `"] || true || "" in ["`, "a\\", "a'b", "a\nb", "\x00\xff", "é"} {
		text := celText(name)
		back, err := strconv.Unquote(text)
		if err != nil || (back != name && !strings.Contains(name, "\xff")) {
			t.Errorf("%q is written as %s, which is %q, %v", name, text, back, err)
		}
		if inner := strings.ReplaceAll(
			strings.ReplaceAll(text[1:len(text)-1], `\\`, ""), `\"`, "",
		); strings.ContainsAny(inner, "\"\n") {
			t.Errorf("%q gets out of %s", name, text)
		}
	}
}
