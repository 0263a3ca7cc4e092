package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// Messages of an action about a device login.
const (
	loginURL  = "https://renku.example.org/auth/realms/Renku/device?user_code=WDJB-MJHT"
	loginLine = "log in at " + loginURL +
		", or open https://renku.example.org/auth/realms/Renku/device and type the code WDJB-MJHT."
)

func login() *tunnel {
	return &tunnel{slow: time.Minute, asks: []string{loginLine, "not approved yet", "not approved yet"}}
}

func TestAnAddressAndACodeStayInView(t *testing.T) {
	for _, size := range [][2]int{{60, 20}, {80, 24}, {120, 40}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			onStage(t, login().options(t), size[0], size[1], func(p *play) {
				p.press("a", "y")
				p.after(40 * time.Second)
				p.shows("log in at", "WDJB-MJHT.", "applying Tunnel keys", "c copy the address", "ctrl+c stop")
				p.unbroken()
				if p.a.w < 120 {
					if !strings.Contains(strings.ReplaceAll(p.screen(), "\n   ", ""), loginURL) {
						t.Fatalf("the address is not whole:\n%s", p.screen())
					}
				}
				p.golden(fmt.Sprintf("asking-%dx%d", size[0], size[1]))
				if !strings.Contains(p.a.View(), ansi.SetHyperlink(loginURL, "id=ask")) {
					t.Fatal("the address is no link")
				}
				p.press("down") // the row that is selected does not matter
				p.out.Reset()
				p.press("c")
				if p.out.String() != ansi.SetSystemClipboard(loginURL) {
					t.Fatalf("copied %q", p.out.String())
				}
				p.after(30 * time.Second)
				p.hides("the code WDJB", "copy the address")
				p.shows("✓ applied Tunnel keys")
				p.press("l")
				p.shows("WDJB-MJHT")
			})
		})
	}
}

func TestNoSizeBreaksWhatIsAsked(t *testing.T) {
	m := login()
	m.slow = time.Hour
	m.asks = append(
		m.asks, "https://例え.example.org/"+strings.Repeat("日本語", 40)+" 日本語", "see (https://example.org/a). Then go on",
	)
	onStage(t, m.options(t), 80, 24, func(p *play) {
		p.press("a", "y")
		p.after(time.Second)
		sweep(p)
		p.press("ctrl+c")
		p.after(time.Second)
	})
}

func TestWhatComesFromOutsideIsNoEscapeSequence(t *testing.T) {
	m := login()
	m.asks = []string{"open https://example.org/\x1b]0;owned\x07\x1b[2Jx?user_code=1 now"}
	onStage(t, m.options(t), 80, 24, func(p *play) {
		p.press("a", "y")
		p.after(time.Second)
		p.shows("open https://example.org/")
		if strings.Contains(p.a.View(), "\x1b[2J") || strings.Contains(p.a.View(), "\x1b]0;") {
			t.Fatalf("an escape sequence came through: %q", p.a.View())
		}
		p.press("ctrl+c")
		p.after(time.Second)
	})
}
