package ui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/text/unicode/norm"
	eastasian "golang.org/x/text/width"
)

// letters says which characters the terminal can show.
type letters int

const (
	anyLetter letters = iota
	plainLine         // lines, dots and arrows are ASCII: they may be two columns wide
	ascii             // all is ASCII
)

// lineLetters are what is two columns wide in some locales, and what stands for it
// there: always one column for one.
var lineLetters = []string{
	"─", "-", "│", "|", "┃", "|", "·", "-", "…", "~", "←", "<", "→", ">", "↑", "^", "↓", "v", "•", "*", "×", "x",
}

// glyphLetters are the other characters outside ASCII that the screen uses.
var glyphLetters = []string{
	"✓", "+", "✗", "x", "◌", ".", "▸", ">",
	"⠋", "|", "⠙", "/", "⠹", "-", "⠸", "\\", "⠼", "|", "⠴", "/", "⠦", "-", "⠧", "\\",
}

// replacer makes text of other letters.
type replacer func(string) string

// Replace is the text in those letters.
func (f replacer) Replace(s string) string { return f(s) }

// plain makes text of the letters that there are, as wide as it was; nil where
// there are all.
func (l letters) plain() replacer {
	switch l {
	case plainLine:
		signs := strings.NewReplacer(lineLetters...)
		return func(s string) string {
			return fold(signs.Replace(s), func(r rune) bool {
				return eastasian.LookupRune(r).Kind() != eastasian.EastAsianAmbiguous
			})
		}
	case ascii:
		signs := strings.NewReplacer(append(append([]string{}, glyphLetters...), lineLetters...)...)
		return func(s string) string { return fold(signs.Replace(s), func(rune) bool { return false }) }
	}
	return nil
}

// fold replaces what is not ASCII and may not stay: a letter with an accent by
// the letter, else by question marks as wide as it was.
func fold(s string, stays func(rune) bool) string {
	if isASCII(s) {
		return s
	}
	var out strings.Builder
	for s != "" {
		cluster, w := s[:1], 1
		if s[0] >= 0x80 {
			cluster, w = ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
		}
		s = s[len(cluster):]
		kept := true
		for _, r := range cluster {
			kept = kept && (r < 0x80 || stays(r))
		}
		base := []rune(norm.NFD.String(cluster))
		switch {
		case kept:
			out.WriteString(cluster)
		case w == 1 && base[0] > ' ' && base[0] < 0x7f:
			out.WriteRune(base[0])
		default:
			out.WriteString(strings.Repeat("?", max(0, w)))
		}
	}
	return out.String()
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// spinner are the frames of what moves while something is under way.
var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧"}
