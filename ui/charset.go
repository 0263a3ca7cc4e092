package ui

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/text/unicode/norm"
	eastasian "golang.org/x/text/width"

	"carrick/steps/engine"
)

// letters is the set of characters that the terminal supports.
type letters int

const (
	anyLetter letters = iota
	plainLine         // lines, dots and arrows are ASCII, because some locales draw them two columns wide
	ascii             // everything is ASCII
)

// lineLetters lists characters that are two columns wide in some locales. Each is followed by its one-column
// replacement.
var lineLetters = []string{
	"─", "-", "│", "|", "┃", "|", "·", "-", "…", "~", "←", "<", "→", ">", "↑", "^", "↓", "v", "•", "*", "×", "x",
	"○", "o", "–", "-", "┌", "+", "┐", "+", "└", "+", "┘", "+", "┄", ".", "╌", "~", "█", "#", "░", ".", "◂", "<",
}

// glyphLetters lists the other non-ASCII characters of the screen, except the symbols of states. Each is followed by
// its replacement.
var glyphLetters = []string{
	"▸", ">",
	"⠋", "|", "⠙", "/", "⠹", "-", "⠸", "\\", "⠼", "|", "⠴", "/", "⠦", "-", "⠧", "\\",
}

// replacer converts text to the supported characters.
type replacer func(string) string

// Replace returns the converted text.
func (f replacer) Replace(s string) string { return f(s) }

// plain returns a replacer that keeps the width of a string. If all characters are supported, it returns nil.
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
		var states []string
		for _, s := range engine.States {
			states = append(states, s.Glyph(), s.ASCII())
		}
		signs := strings.NewReplacer(slices.Concat(states, glyphLetters, lineLetters)...)
		return func(s string) string { return fold(signs.Replace(s), func(rune) bool { return false }) }
	}
	return nil
}

// fold replaces the non-ASCII characters for which stays returns false. An accented letter becomes its base letter. Any
// other character becomes question marks of the same width.
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

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧"}
