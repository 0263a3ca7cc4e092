package ui

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/text/unicode/norm"

	"carrick/cluster/clean"
)

// oneLine makes untrusted text safe for one line of the screen.
func oneLine(s string) string {
	return strings.Join(strings.Fields(even(clean.Text(s))), " ")
}

// manyLines makes untrusted text safe for the screen. It keeps the line breaks.
func manyLines(s string) []string {
	s = strings.ReplaceAll(strings.TrimRight(even(clean.Text(s)), "\n"), "\t", "    ")
	return strings.Split(s, "\n")
}

// even makes text equally wide in every terminal. Some terminals draw combined characters, such as a family emoji, as
// one character. Others draw several. even keeps only the first character of each combination.
func even(s string) string {
	if isASCII(s) {
		return s
	}
	s = norm.NFC.String(s)
	var out strings.Builder
	for s != "" {
		cluster, w := s[:1], 1
		if s[0] >= 0x80 || (len(s) > 1 && s[1] >= 0x80) {
			cluster, w = ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
		}
		s = s[len(cluster):]
		if ansi.StringWidthWc(cluster) != w && ansi.StringWidth(cluster) == w {
			_, first := utf8.DecodeRuneInString(cluster)
			cluster = cluster[:first]
		}
		out.WriteString(cluster)
	}
	return out.String()
}

func width(s string) int { return ansi.StringWidth(s) }

// clip shortens a line to at most w columns. A shortened line ends in an ellipsis.
func clip(s string, w int) string {
	if w <= 0 {
		return ""
	}
	return ansi.Truncate(s, w, "…")
}

// pad clips or pads a line to exactly w columns.
func pad(s string, w int) string {
	s = clip(s, w)
	return s + strings.Repeat(" ", max(0, w-width(s)))
}

// spread puts left at the left end and right at the right end of a line. If both do not fit, it clips left. If less
// than a third of the width would remain for left, it drops right.
func spread(left, right string, w int) string {
	if right == "" {
		return clip(left, w)
	}
	room := w - width(right) - 2
	if room < width(left) && room < w/3 {
		return clip(left, w)
	}
	return pad(clip(left, w-width(right)-1), w-width(right)) + right
}

// clipName shortens a name to at most w columns. Cluster names often start alike and differ at the end, so clipName
// cuts the middle.
func clipName(s string, w int) string {
	if width(s) <= w || w < 8 {
		return clip(s, w)
	}
	head := ansi.Truncate(s, (w-1)/3, "")
	tail := ansi.TruncateLeft(s, width(s)-(w-1-width(head)), "")
	return clip(head+"…"+tail, w)
}

// wrap wraps text into lines of at most w columns, but never more than proseWidth. Lines break at spaces. A word that
// is longer than a line can break anywhere.
func wrap(s string, w int) []string {
	if w < 1 {
		return nil
	}
	w = min(w, proseWidth)
	for _, word := range strings.Fields(s) {
		if width(word) > w {
			return within(ansi.Wrap(s, w, " /"), w)
		}
	}
	// Names and commands contain many hyphens, so lines must not break at them.
	s = strings.ReplaceAll(s, "-", unbroken)
	return within(strings.ReplaceAll(ansi.Wrap(s, w, " "), unbroken, "-"), w)
}

// within enforces the maximum width of lines, because ansi.Wrap can exceed it by a space.
func within(text string, w int) []string {
	var out []string
	for _, l := range strings.Split(text, "\n") {
		if width(l) > w {
			out = append(out, strings.Split(ansi.Hardwrap(l, w, true), "\n")...)
			continue
		}
		out = append(out, l)
	}
	return out
}

const unbroken = "\u2011"

// hang puts label before the first line and indents the other lines.
func hang(label string, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		if i == 0 {
			out[i] = label + l
			continue
		}
		out[i] = strings.Repeat(" ", width(label)) + l
	}
	return out
}

// fill pads or cuts a block to exactly h lines.
func fill(block []string, h int) []string {
	h = max(0, h)
	for len(block) < h {
		block = append(block, "")
	}
	return block[:h]
}

func linesOf(blocks [][]string) int {
	n := 0
	for _, b := range blocks {
		n += len(b)
	}
	return n
}

// squeeze shortens blocks until they have at most h lines. It always shortens the longest block. If each block has one
// line, it drops the last block.
func squeeze(blocks [][]string, h, w int) []string {
	for total := linesOf(blocks); total > h; total-- {
		longest := 0
		for i := range blocks {
			if len(blocks[i]) >= len(blocks[longest]) {
				longest = i
			}
		}
		if n := len(blocks[longest]); n > 1 {
			blocks[longest] = cutLast(blocks[longest], w)
			continue
		}
		if len(blocks) == 0 {
			break
		}
		blocks = blocks[:len(blocks)-1]
	}
	var out []string
	for _, b := range blocks {
		out = append(out, b...)
	}
	return out
}

// cutLast drops the last line of a block and adds an ellipsis to the new last line.
func cutLast(b []string, w int) []string {
	b = append([]string{}, b[:len(b)-1]...)
	last := strings.TrimSuffix(b[len(b)-1], "…")
	b[len(b)-1] = ansi.Truncate(last, w-2, "") + " …"
	return b
}

// span formats a duration in one unit, such as "3 s", "4 min", "2 h" or "6 d".
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(0, int(d/time.Second)))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d/time.Minute))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d/time.Hour))
	}
	return fmt.Sprintf("%d d", int(d/(24*time.Hour)))
}

func positions(from, shown, all int) string {
	return fmt.Sprintf("%d to %d of %d", from+1, from+shown, all)
}
