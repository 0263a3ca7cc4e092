package plain

import "testing"

// The test covers each Markdown construct in the READMEs, as the terminal shows it.
func TestPlainText(t *testing.T) {
	for name, c := range map[string]struct{ markdown, want string }{
		"inline": {
			"Run `carrick check *.yaml`, see [the **guide**](a.md#b), *not* [its page](https://x.org).",
			"Run carrick check *.yaml, see the guide, not its page.",
		},
		"heading and paragraph": {"## Two `admins`\n\none\ntwo\n\n\nthree", "TWO ADMINS\n\none two\n\nthree"},
		"code":                  {"```yaml\na: [b](c)\n\n  - `d`\n```", "  a: [b](c)\n\n    - `d`"},
		"list": {
			"- one\n  more\n- two\n\n  ```\n  code\n  ```\n\nend",
			"- one more\n- two\n\n    code\n\nend",
		},
		"long item": {
			"10. a list item that is longer than the eighty columns of a terminal is broken and indented",
			"10. a list item that is longer than the eighty columns of a terminal is broken\n    and indented",
		},
		"names": {"| | |\n|---|---|\n| `a\\|b` | one |\n| c | two |", "  a|b  one\n  c    two"},
		"pairs": {
			"| page | us |\n|---|---|\n| a sentence of some length | b |", "  page  a sentence of some length\n  us    b",
		},
		"narrow": {"| n | x | y |\n|--:|---|---|\n| 10 | a | b |", "  n   x  y\n  10  a  b"},
		"wide": {
			"| what | x | y |\n|---|---|---|\n| long | a cell that is so wide that no line can hold | all three of them, " +
				"which are blocks |",
			"  long\n    x  a cell that is so wide that no line can hold\n    y  all three of them, which are blocks",
		},
	} {
		if got := Text(c.markdown); got != c.want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, c.want)
		}
	}
}

func TestSection(t *testing.T) {
	const text = "# A\n\none\n\n## B\n\ntwo\n\n```\n# no heading\n```\n\n### C\n\nthree\n\n## D\n\nfour\n"
	for title, want := range map[string]string{
		"B": "\ntwo\n\n```\n# no heading\n```\n\n### C\n\nthree\n", "D": "\nfour\n", "E": "",
	} {
		if got := Section(text, title); got != want {
			t.Errorf("%s: %q, want %q", title, got, want)
		}
	}
}
