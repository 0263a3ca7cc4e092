package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"time"
	"unicode/utf8"
)

// tape is a recording of output with timestamps.
type tape struct {
	pause  time.Duration // the maximum pause between two events; a longer pause is shortened
	events []event
	last   time.Duration // actual time of the last event
	now    time.Duration // time of the last event on the tape
	rest   []byte        // the first bytes of an incomplete UTF-8 character
}

type event struct {
	at   time.Duration
	text string
}

// together is the interval within which output belongs to one frame.
const together = 15 * time.Millisecond

// queries matches terminal queries. They must not be in the recording, because the terminal that replays it would reply
// to them.
var queries = regexp.MustCompile(`\x1b\][0-9]+;\?(\x07|\x1b\\)|\x1b\[(6n|c|>c|>q|\?[0-9]+\$p)`)

// add adds data to the tape. at is the time at which data was written.
func (t *tape) add(at time.Duration, data []byte) {
	data = append(t.rest, data...)
	end := len(data)
	for i := 1; i <= utf8.UTFMax && i <= len(data); i++ {
		if c := data[len(data)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(data[len(data)-i:]) {
				end = len(data) - i
			}
			break
		}
	}
	t.rest = bytes.Clone(data[end:])
	text := queries.ReplaceAllString(string(data[:end]), "")
	gap := at - t.last
	t.last = at
	t.now += min(gap, t.pause)
	if n := len(t.events); n > 0 && t.now-t.events[n-1].at < together {
		t.events[n-1].text += text
		return
	}
	if text != "" {
		t.events = append(t.events, event{t.now, text})
	}
}

// header is the first line of an asciicast.
type header struct {
	Version int               `json:"version"`
	Width   int               `json:"width"`
	Height  int               `json:"height"`
	Title   string            `json:"title,omitempty"`
	Env     map[string]string `json:"env"`
}

// write writes the tape as an asciicast. A pause at the end keeps the last frame readable.
func (t *tape) write(o options) error {
	var out bytes.Buffer
	lines := json.NewEncoder(&out)
	lines.SetEscapeHTML(false)
	if err := lines.Encode(
		header{2, o.columns, o.rows, o.title, map[string]string{"TERM": "xterm-256color"}},
	); err != nil {
		return err
	}
	for _, e := range append(t.events, event{t.now + o.reading, ""}) {
		text, err := json.Marshal(e.text)
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "[%.3f, \"o\", %s]\n", e.at.Seconds(), text)
	}
	return os.WriteFile(o.out, out.Bytes(), 0o644)
}
