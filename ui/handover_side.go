package ui

import (
	"strings"

	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

// filing says what the text field asks for while the user selects a facts file for a side.
type filing int

const (
	unfiled filing = iota // no facts file; the user selects a context
	filePath
	filePhrase // the passphrase of the facts file
)

// askFile asks for a facts file instead of a context. At least one side must be a context, so askFile refuses if the
// other side already uses a facts file.
func (p *sides) askFile() tea.Cmd {
	if p.spec[p.side().Peer()].Facts != "" {
		p.said = "the " + p.guide.Sides[p.side().Peer()].Name +
			" already uses a facts file; the other side must be one of your contexts"
		return nil
	}
	p.said, p.file = "", filePath
	p.input.SetValue("")
	return p.input.Focus()
}

func (p *sides) unfile() tea.Cmd {
	p.file, p.input.EchoMode = unfiled, textinput.EchoNormal
	delete(p.spec, p.side())
	p.input.SetValue("")
	p.input.Blur()
	return nil
}

// filed handles the entered file name, and then the passphrase if the file requires one.
func (p *sides) filed() tea.Cmd {
	if p.file == filePhrase {
		if err := p.a.o.Unlock(p.spec[p.side()].Facts, p.input.Value()); err != nil {
			p.said = oneLine(err.Error())
			p.input.SetValue("")
			return nil
		}
		return p.filedAway()
	}
	path := strings.TrimSpace(p.input.Value())
	head, err := engine.ReadPeerFileHeader(path, p.guide, p.side())
	if err != nil {
		p.said = oneLine(err.Error())
		return nil
	}
	p.spec[p.side()], p.name, p.signer, p.said = linkfile.EndpointSpec{Facts: path}, head.Link, head.Signer, ""
	if !head.ByPhrase || p.a.o.Unlock == nil {
		return p.filedAway()
	}
	p.file, p.input.EchoMode = filePhrase, textinput.EchoPassword
	p.input.SetValue("")
	return p.input.Focus()
}

func (p *sides) filedAway() tea.Cmd {
	p.file, p.input.EchoMode = unfiled, textinput.EchoNormal
	p.said = "The facts file is signed with the key " + oneLine(p.signer) + ". Compare the key with the " +
		p.guide.Sides[p.side()].Name + "'s admin: carrick asks you to confirm it before the first change."
	p.stage++
	return p.advance()
}

// fileLine returns the line of a side while its file is being chosen.
func (p *sides) fileLine(name string) string {
	a := p.a
	what := map[filing]string{filePath: "facts file ", filePhrase: "passphrase of the file "}[p.file]
	p.input.Width = max(1, a.w-p.labels()-width(what)-8)
	return " " + a.t.accent.Render("▸") + " " + a.t.title.Render(name) + "  " + a.t.faint.Render(what) + p.input.View()
}

// fileLines returns an explanation of facts files, and what to request from the other admin.
func (p *sides) fileLines() []string {
	role, flag := p.guide.Sides[p.side()].Name, p.guide.Sides[p.side()].Flag()
	text := "   If you have no credentials for the " + role +
		", its admin sends you a facts file, and you send one to them. Ask them to run:"
	out := wrap(text, max(1, p.a.w-4))
	return append(out, "", "     "+clip("carrick handover LINK --side "+flag+" -o "+flag+".facts", max(1, p.a.w-6)))
}
