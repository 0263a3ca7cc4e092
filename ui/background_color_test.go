package ui

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/muesli/termenv"
)

// chunks is a terminal whose reads return these pieces of input.
type chunks struct {
	terminalFile
	list []string
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.list) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.list[0])
	c.list = c.list[1:]
	return n, nil
}

// listened returns the keys and the replies in the input.
func listened(t *testing.T, pieces ...string) (keys, answer string) {
	t.Helper()
	l := &listener{terminalFile: &chunks{list: pieces}, told: func(a string) { answer += "<" + a + ">" }}
	buf := make([]byte, 256)
	for {
		n, err := l.Read(buf)
		keys += string(buf[:n])
		if err != nil {
			return keys, answer
		}
	}
}

func TestAnAnswerIsNoKeys(t *testing.T) {
	for _, end := range []string{"\x07", "\x1b\\"} {
		whole := "jk" + groundReply + "rgb:1e1e/1e1e/aaaa" + end + "\x1b[Aq"
		for cut := range whole {
			if strings.HasSuffix(whole[:cut], "k\x1b") {
				continue // an escape that ends a piece is a key: terminals write answers whole
			}
			keys, answer := listened(t, whole[:cut], whole[cut:])
			if keys != "jk\x1b[Aq" || answer != "<rgb:1e1e/1e1e/aaaa>" {
				t.Errorf("cut at %d: keys %q, answer %q", cut, keys, answer)
			}
		}
	}
}

func TestKeysAreNoAnswer(t *testing.T) {
	for _, pieces := range [][]string{
		{"\x1b", "j"},
		{"\x1b", "\x1b", "[A"},
		{"\x1b]", "x", "11;"},
		{"\x1b]11;", strings.Repeat("a", 80), "q"},
		{"\x1b]1", "2;a", "q"},
	} {
		if keys, answer := listened(t, pieces...); keys != strings.Join(pieces, "") || answer != "" {
			t.Errorf("%q: keys %q, answer %q", pieces, keys, answer)
		}
	}
}

func TestWhatATerminalAnswers(t *testing.T) {
	for answer, want := range map[string]string{
		"rgb:1e1e/1e1e/1e1e":       "#1e1e1e",
		"rgb:ff/f6/e3":             "#fff6e3",
		"rgb:f/0/8":                "#ff0088",
		"rgba:0000/0000/0000/ffff": "#000000",
		"#fdf6e3":                  "#fdf6e3",
		"rgb:":                     "",
		"rgb:1/2":                  "",
		"rgb:12345/0/0":            "",
		"rgb:zz/0/0":               "",
		"":                         "",
	} {
		got, ok := groundOf(answer)
		if ok != (want != "") || (ok && got != termenv.Color(termenv.RGBColor(want))) {
			t.Errorf("%q: %v, %v; want %q", answer, got, ok, want)
		}
	}
}

func TestTheThemeFollowsAnAnswerInTime(t *testing.T) {
	for after, want := range map[time.Duration]string{
		10 * time.Millisecond: themeLight, 300 * time.Millisecond: themeAuto,
	} {
		onStage(t, (&tunnel{}).options(t), 80, 24, func(p *play) {
			p.a.asks = true
			p.do(p.a.askGround())
			p.settle()
			if got := p.out.String(); got != askGround {
				t.Fatalf("it asked %q", got)
			}
			p.after(after)
			p.deliver(groundMsg{termenv.RGBColor("#ffffff")})
			if got := p.a.skin.palette(); got != want {
				t.Errorf("after %v: %s, want %s", after, got, want)
			}
		})
	}
}

func TestOnATerminalTheBackgroundIsAsked(t *testing.T) {
	o := (&tunnel{}).options(t)
	o.replyWithin = time.Minute // on a busy machine, a reply takes long
	p := onTerminal(t, t.Context(), o)
	p.until(askGround)
	if !strings.Contains(p.all.String(), "\x1b[?1049h") {
		t.Error("it was asked before the screen was up")
	}
	p.types("\x1b]11;rgb:ffff/ffff/eaea\x1b\\")
	p.until("\x1b[1;38;5;124m✗") // the red of the light theme: an e or an a in the answer was no key
	p.types("q")
	p.until("undoes the changes that the link made")
	if err := <-p.done; err != nil {
		t.Fatal(err)
	}
	if strings.Count(p.all.String(), askGround) != 1 {
		t.Error("it was asked more than once")
	}
}
