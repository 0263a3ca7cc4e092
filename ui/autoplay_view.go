package ui

import (
	"strings"
	"time"
	"unicode"
)

// These constants determine how long a caption is shown at pace 1.
const (
	wordsAMinute = 190
	glance       = 900 * time.Millisecond // time to find the caption, and to look back at the screen
)

func reading(text string, pace float64) time.Duration {
	d := glance + time.Duration(len(strings.Fields(text)))*time.Minute/wordsAMinute
	return time.Duration(float64(d) / pace)
}

// sized reserves the lines for captions and returns the height that is left for the page. The number of lines depends
// only on the screen size, so the layout is stable.
func (p *player) sized(w, h int) int {
	if p == nil {
		return h
	}
	switch {
	case h < 5:
		p.lines = 0
	case h < 16:
		p.lines = 1
	case w < bothFrom:
		p.lines = 3
	default:
		p.lines = 2
	}
	return h - p.lines
}

// captionRoom returns the width of a caption, in columns, between its glyph and the text on the right.
func (p *player) captionRoom(right string) int {
	room := p.a.w - 4
	if right != "" {
		room -= width(right) + 2
	}
	return max(8, room)
}

// inParts splits a caption into parts that are shown one after another. A part consists of whole sentences if they fit.
func (p *player) inParts(m move) []string {
	w, lines := p.captionRoom(p.right(m)), max(1, p.lines)
	fits := func(s string) bool { return len(wrap(s, w)) <= lines }
	var parts []string
	add := func(s string) {
		if n := len(parts); n > 0 && fits(parts[n-1]+" "+s) {
			parts[n-1] += " " + s
			return
		}
		parts = append(parts, s)
	}
	for _, s := range sentences(oneLine(m.text)) {
		if fits(s) {
			add(s)
			continue
		}
		parts = append(parts, evenly(strings.Fields(s), fits)...)
	}
	if len(parts) == 0 {
		return []string{""}
	}
	return parts
}

// evenly joins words into strings of about equal length. It returns as few strings as possible such that each string
// fits.
func evenly(words []string, fits func(string) bool) []string {
	for n := 2; n < len(words); n++ {
		var out []string
		good := true
		for i := range n {
			text := strings.Join(words[i*len(words)/n:(i+1)*len(words)/n], " ")
			if i > 0 {
				text = "… " + text
			}
			if i < n-1 {
				text += " …"
			}
			good = good && fits(text)
			out = append(out, text)
		}
		if good {
			return out
		}
	}
	return words
}

// sentences splits text into sentences. A sentence ends with a period, question mark or exclamation mark, followed by a
// space and then by a capital letter or a non-letter.
func sentences(text string) []string {
	var out []string
	from, runes := 0, []rune(text)
	for i := 1; i+2 < len(runes); i++ {
		if strings.ContainsRune(".?!", runes[i]) && runes[i+1] == ' ' && (unicode.IsUpper(runes[i+2]) ||
			!unicode.IsLetter(runes[i+2])) {
			out = append(out, string(runes[from:i+1]))
			from = i + 2
		}
	}
	return append(out, string(runes[from:]))
}

// right returns the text at the right end of a caption. This is the next key, or what the user can do.
func (p *player) right(m move) string {
	switch {
	case p.paused:
		return "paused: space resumes"
	case p.ended:
		return ""
	case m.kind == halt:
		return "space continues"
	case m.hint.key != "":
		return strings.TrimSpace(m.hint.key + " " + m.hint.text)
	}
	return ""
}

// caption returns the lines below the page.
func (p *player) caption() []string {
	if p == nil || p.lines == 0 {
		return nil
	}
	a, n, text, right := p.a, p.lines, "", p.right(p.move)
	if p.part < len(p.parts) {
		text = p.parts[p.part]
	}
	if p.stalled() && !p.paused {
		text = "Still waiting, for " + span(a.now().Sub(p.began)) + " now"
		if p.move.what != nil {
			text += ": " + oneLine(p.move.what())
		}
	}
	if p.paused && a.top().typing() {
		right = "paused: press esc to leave the field, then space"
	}
	lines := wrap(text, p.captionRoom(right))
	if len(lines) > n {
		lines = append(lines[:n-1], clip(strings.Join(lines[n-1:], " "), p.captionRoom(right)))
	}
	lines = fill(lines, n)
	out := make([]string, n)
	for i, l := range lines {
		sign := "   "
		if i == 0 {
			sign = " " + a.t.accent.Render("▸") + " "
		}
		out[i] = sign + a.t.title.Render(l)
		if i == n-1 && right != "" {
			out[i] = pad(out[i], a.w-width(right)-3) + a.t.selected.Render(" "+right+" ") + " "
		}
	}
	return out
}
