package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/vt"
)

// What a recording may be.
const (
	largestCast  = 400_000 // bytes
	longestPause = 5.1     // seconds; captions are read in pauses
)

// cast is a recording: what its terminal shows after each event.
type cast struct {
	header struct {
		Version       int
		Width, Height int
		Title         string
		Env           map[string]string
		Timestamp     int64
	}
	at     []float64
	text   []string
	frames []string
}

// playCast plays a recording on a terminal.
func playCast(t *testing.T, path string) cast {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var c cast
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, largestCast)
	if !lines.Scan() {
		t.Fatal("it is empty")
	}
	if err := json.Unmarshal(lines.Bytes(), &c.header); err != nil {
		t.Fatalf("its header is %q: %v", lines.Text(), err)
	}
	screen := vt.NewEmulator(c.header.Width, c.header.Height)
	go func() { _, _ = io.Copy(io.Discard, screen) }()
	defer func() { _ = screen.InputPipe().(io.Closer).Close() }()
	for lines.Scan() {
		var at float64
		var kind, text string
		if err := json.Unmarshal(lines.Bytes(), &[]any{&at, &kind, &text}); err != nil || kind != "o" {
			t.Fatalf("an event is %q: %v", lines.Text(), err)
		}
		if _, err := screen.WriteString(text); err != nil {
			t.Fatal(err)
		}
		c.at, c.text, c.frames = append(c.at, at), append(c.text, text), append(c.frames, screen.String())
	}
	if lines.Err() != nil || len(c.frames) < 100 {
		t.Fatalf("%d events, %v", len(c.frames), lines.Err())
	}
	return c
}

// shows tells whether a frame of the recording matches.
func (c cast) shows(pattern string) bool {
	r := regexp.MustCompile(pattern)
	for _, f := range c.frames {
		if r.MatchString(f) {
			return true
		}
	}
	return false
}

// The recordings show what they are said to show: the walk from the first page
// to a green summary.
func TestCastsShowTheWholeWalk(t *testing.T) {
	for _, g := range guides() {
		t.Run(g.Name, func(t *testing.T) {
			path := filepath.Join("..", "..", "testdata", "cast", g.Name+".cast")
			if info, err := os.Stat(path); err != nil {
				t.Fatalf("%v\n(make demo-cast GUIDE=%s records it)", err, g.Name)
			} else if info.Size() > largestCast {
				t.Errorf("it has %d bytes", info.Size())
			}
			c := playCast(t, path)
			if h := c.header; h.Version != 2 || h.Title == "" || h.Timestamp != 0 || len(h.Env) != 1 || h.Env["TERM"] == "" {
				t.Errorf("its header is %+v", h)
			}
			for i := 1; i < len(c.at); i++ {
				if gap := c.at[i] - c.at[i-1]; gap < 0 || gap > longestPause {
					t.Errorf("at %.1f s it stands still for %.1f s", c.at[i-1], gap)
				}
			}
			if !strings.Contains(c.frames[0], "$ carrick demo "+g.Name) {
				t.Errorf("it begins with\n%s", c.frames[0])
			}
			for i, s := range g.Steps {
				if !c.shows(fmt.Sprintf(`step %d of %d`, i+1, len(g.Steps))) || !c.shows(fmt.Sprintf(`(?m)^ %d %s `, i+1, regexp.QuoteMeta(s.Title))) {
					t.Errorf("step %d, %s, is not in it", i+1, s.Title)
				}
			}
			last := c.frames[len(c.frames)-1]
			green := strings.Contains(last, "✓ all is green") || strings.Contains(last, "✓ everything is as it should be")
			if !green || !strings.Contains(last, "summary") {
				t.Errorf("it ends with\n%s", last)
			}
		})
	}
}

// Nothing of the machine on which it was recorded is in a recording.
func TestCastsNameNoMachine(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/cast/*.cast")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	never := []string{`/home/`, `/root\b`, `/Users/`, `@[a-z0-9-]+:[~/]`}
	home, _ := os.UserHomeDir()
	host, _ := os.Hostname()
	dir, _ := os.Getwd()
	names := []string{home, host, filepath.Dir(filepath.Dir(dir))}
	if u, err := user.Current(); err == nil && u.Username != "root" {
		names = append(names, u.Username)
	}
	for _, name := range names {
		if len(name) > 3 && name != "/root" { // shorter ones are words; root has a part in a guide
			never = append(never, `\b`+regexp.QuoteMeta(strings.Trim(name, "/"))+`\b`)
		}
	}
	for _, path := range paths {
		c := playCast(t, path)
		all := strings.NewReplacer("/root/.kube", "", "/root/.interlink", "").Replace(strings.Join(c.text, "") + strings.Join(c.frames, "\n")) // the guides' own
		for _, pattern := range never {
			if found := regexp.MustCompile(`.{0,30}` + pattern + `.{0,30}`).FindString(all); found != "" {
				t.Errorf("%s has %q, by %s", path, found, pattern)
			}
		}
		if strings.Contains(all, "\x1b]11;?") || strings.Contains(all, "\x1b[6n") {
			t.Errorf("%s asks the terminal something", path)
		}
	}
}
