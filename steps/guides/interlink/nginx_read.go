package interlink

import (
	"fmt"
	"strings"
)

// readNginx parses text in nginx's configuration syntax into directives. It does not interpret the directives or expand
// variables.
func readNginx(text string) ([]directive, error) {
	r := nginxReader{text: text, line: 1}
	out, err := r.directives(0)
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", r.line, err)
	}
	return out, nil
}

type nginxReader struct {
	text string
	at   int
	line int
}

// maxDepth is the maximum nesting of blocks. The parser is recursive, and its input is not trusted.
const maxDepth = 20

func (r *nginxReader) directives(depth int) ([]directive, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("blocks are nested deeper than %d", maxDepth)
	}
	out := []directive{}
	var words []word
	for {
		w, mark, err := r.next()
		switch {
		case err != nil:
			return nil, err
		case mark == 0 && w != "":
			words = append(words, w)
		case mark == ';':
			if len(words) > 0 {
				out = append(out, directive{words: words})
			}
			words = nil
		case mark == '{':
			in, err := r.directives(depth + 1)
			if err != nil {
				return nil, err
			}
			out, words = append(out, directive{words: words, block: in}), nil
		default: // '}' or the end of the text
			if len(words) > 0 {
				return nil, fmt.Errorf("%q does not end in ;", words[0])
			}
			if (mark == '}') != (depth > 0) {
				return nil, fmt.Errorf("a block is not closed, or is closed twice")
			}
			return out, nil
		}
	}
}

// next returns the next word, or one of the tokens ; { } as a rune, or -1 at the end of the text.
func (r *nginxReader) next() (word, rune, error) {
	for r.at < len(r.text) {
		c := r.text[r.at]
		switch {
		case c == '\n':
			r.line++
			r.at++
		case c == ' ' || c == '\t' || c == '\r':
			r.at++
		case c == '#':
			if end := strings.IndexByte(r.text[r.at:], '\n'); end >= 0 {
				r.at += end
			} else {
				r.at = len(r.text)
			}
		case c == ';' || c == '{' || c == '}':
			r.at++
			return "", rune(c), nil
		case c == '"' || c == '\'':
			return r.quoted(c)
		default:
			start := r.at
			for r.at < len(r.text) && !strings.ContainsRune(" \t\r\n;{}", rune(r.text[r.at])) {
				if strings.HasPrefix(r.text[r.at:], "${") {
					end := strings.IndexByte(r.text[r.at:], '}')
					if end < 0 {
						return "", 0, fmt.Errorf("a variable is not closed")
					}
					r.at += end
				}
				r.at++
			}
			return word(r.text[start:r.at]), 0, nil
		}
	}
	return "", -1, nil
}

// quoted returns a quoted word with its quotes.
func (r *nginxReader) quoted(quote byte) (word, rune, error) {
	start := r.at
	for r.at++; r.at < len(r.text); r.at++ {
		switch r.text[r.at] {
		case '\n':
			r.line++
		case '\\':
			r.at++
		case quote:
			r.at++
			return word(r.text[start:r.at]), 0, nil
		}
	}
	return "", 0, fmt.Errorf("a quote is not closed")
}

// every returns the directives with the given name at any depth.
func every(in []directive, name string) []directive {
	var out []directive
	for _, d := range in {
		if len(d.words) > 0 && string(d.words[0]) == name {
			out = append(out, d)
		}
		out = append(out, every(d.block, name)...)
	}
	return out
}

// bare returns w without its quotes.
func (w word) bare() string { return strings.Trim(string(w), `"'`) }
