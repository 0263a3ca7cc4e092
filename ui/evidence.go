package ui

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
)

// pane returns the area below or next to the checks. It shows the progress of a run, or the evidence of the selected
// cell.
func (p *stepPage) pane(w, h int) []string {
	if h < 1 {
		return nil
	}
	if p.a.run.visible() {
		return p.a.run.view(p.a, w, h)
	}
	check, cell, ok := p.cell()
	if !ok {
		return nil
	}
	blocks := p.evidence(check, cell, w, false)
	if linesOf(blocks) > h && len(blocks) > 2 {
		blocks = blocks[:len(blocks)-1] // drop the links for further reading first
	}
	if linesOf(blocks) > h && check.Why != "" { // then drop the reason, but keep the fix
		brief := *check
		brief.Why = ""
		if blocks = p.evidence(&brief, cell, w, false); linesOf(blocks) > h && len(blocks) > 2 {
			blocks = blocks[:len(blocks)-1]
		}
	}
	if linesOf(blocks) <= h {
		return squeeze(blocks, h, w)
	}
	return p.moreBelow(squeeze(blocks, h, w), w)
}

// moreBelow adds a hint to shortened text. The hint names the key that shows the full text.
func (p *stepPage) moreBelow(lines []string, w int) []string {
	text := p.a.k.Open.hint().key + " shows all"
	if len(lines) == 0 || w < 3*width(text) {
		return lines
	}
	last := &lines[len(lines)-1]
	*last = spread(*last, p.a.t.faint.Render(text)+" ", w)
	return lines
}

// evidence returns what is known about a cell, in blocks. These are the finding, why it matters, the fix, and links.
// For a passing check it returns only the finding, unless all is true.
func (p *stepPage) evidence(check *steps.Check, cell steps.Cell, w int, all bool) [][]string {
	a, r := p.a, p.a.live.Board.Verdict(cell)
	found := a.foundOf(cell)
	if r.Status == steps.Pending && found == "" {
		found = "checking"
	}
	if cause := a.live.Cause(cell); cause != "" && strings.HasPrefix(found, "blocked by ") { // by the name of the check
		found = "blocked by " + oneLine(cause)
	}
	behind := a.live.Stops(cell)
	head := " " + a.t.sign(a.live.Board.State(cell)) + " " + a.t.title.Render(p.guide().Sides[cell.Side].Name) +
		": "
	blocks := [][]string{hang2(head, "   ", found, w)}
	if len(behind) > 0 {
		blocks = append(blocks, []string{"   " + a.t.title.Render(causes(len(behind)))})
	}
	label := func(name string, lines []string) {
		blocks = append(blocks, hang("   "+a.t.faint.Render(pad(name, 5))+" ", lines))
	}
	room := max(1, w-10)
	if check.Why != "" && (all || r.Status != steps.Pass) {
		label("Why", wrap(oneLine(check.Why), room))
	}
	if all && len(behind) > 0 {
		var lines []string
		for _, c := range behind {
			lines = append(lines, wrap(oneLine(a.live.Title(c, cell)), room)...)
		}
		label("Stops", lines)
	}
	if fix := p.fixLines(cell, room); len(fix) > 0 {
		label("Fix", fix)
	}
	if all || (r.Status != steps.Pass && r.Status != steps.Pending) {
		label("More", wrap(a.t.faint.Render(a.live.Explains(check)), room))
	}
	return blocks
}

// fixLines returns the key that applies the fix. If there is no such key, it returns the command.
func (p *stepPage) fixLines(c steps.Cell, w int) []string {
	a, fix := p.a, p.a.live.Fix(c)
	var out []string
	if fix.Action != nil {
		out = hang(a.t.key.Render("f")+"  ", wrap(oneLine(fix.Title), max(1, w-3)))
	}
	for i, line := range fix.Run {
		head := "   "
		if i == 0 {
			head = a.t.key.Render("c") + "  "
		}
		for _, l := range manyLines(line) {
			out = append(out, hang(head, wrap(l, max(1, w-3)))...)
		}
	}
	return out
}

// hang2 wraps text to w columns. head precedes the first line. indent precedes the other lines and can be narrower.
func hang2(head, indent, text string, w int) []string {
	first := wrap(text, max(1, w-width(head)-1))
	out := []string{head + first[0]}
	rest := strings.TrimSpace(strings.TrimPrefix(text, strings.TrimSpace(first[0])))
	if rest == "" || len(first) == 1 {
		return out
	}
	for _, l := range wrap(rest, max(1, w-width(indent)-1)) {
		out = append(out, indent+l)
	}
	return out
}

func (p *stepPage) openDetail() tea.Cmd {
	if p.a.run.visible() {
		return p.a.lay(p.a.logPanel())
	}
	check, cell, ok := p.cell()
	if !ok {
		return nil
	}
	detail := p.a.pager(oneLine(check.Title), func(w int) []string {
		var out []string
		for _, b := range p.evidence(check, cell, w, true) {
			out = append(out, append(b, "")...)
		}
		out = append(out, p.inFull(cell, w)...)
		return append(out, p.particulars(check, cell, w)...)
	})
	detail.copy = func() string { return p.a.live.Copied(cell) }
	detail.hints = func() []hint {
		if mend, _ := p.a.live.Offer(cell); mend == nil {
			return nil
		}
		return []hint{p.a.k.Fix.hint()}
	}
	detail.more = func(k tea.KeyMsg) tea.Cmd {
		if !key.Matches(k, p.a.k.Fix.Binding) {
			return nil
		}
		p.a.lift()
		return p.fix()
	}
	return p.a.lay(detail)
}

func (p *stepPage) inFull(cell steps.Cell, w int) []string {
	var out []string
	for _, l := range p.a.live.Board.Verdict(cell).Lines {
		for _, l := range manyLines(l) {
			out = append(out, within("   "+l, w)...)
		}
	}
	if len(out) > 0 {
		out = append(out, "")
	}
	return out
}

// particulars returns technical details of a cell.
func (p *stepPage) particulars(check *steps.Check, cell steps.Cell, w int) []string {
	a, k := p.a, p.a.live.Look(cell)
	var out []string
	row := func(name, text string) {
		if text != "" {
			out = append(out, hang("   "+a.t.faint.Render(pad(name, 5))+" ", wrap(text, max(1, w-10)))...)
		}
	}
	row("Check", check.Name)
	row("From", oneLine(a.live.From(cell)))
	if !k.Began.IsZero() {
		seen := fmt.Sprintf("checked at %s, in %d ms", k.Began.Format("15:04:05"), k.Took.Milliseconds())
		if why := k.Trace.Unwatched(); why != nil {
			seen += "; polled: " + oneLine(why.Error())
		} else if _, polled := k.Trace.Seen(); polled {
			seen += "; polled, because watching is not permitted"
		}
		row("Seen", seen)
	}
	if check.Timeout > 0 {
		row("Waits", "at most "+span(check.Timeout))
	}
	for i, need := range p.guide().Needs(cell) {
		label := "Needs"
		if i > 0 {
			label = ""
		}
		text := a.t.sign(a.live.Board.State(need)) + " " + a.live.Title(need, need)
		out = append(out, hang("   "+a.t.faint.Render(pad(label, 5))+" ", wrap(text, max(1, w-10)))...)
	}
	row("See", strings.Join(check.References, "; "))
	row("Step", oneLine(p.step().Why)) // the screen of a long step does not show it
	return out
}
