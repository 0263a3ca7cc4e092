package ui

import (
	"fmt"
	"testing"
)

// scenes are ways to each screen and panel, from the step that opens first.
var scenes = map[string][]string{
	"step":    {},
	"first":   {"1"},
	"summary": {"3", "n"},
	"help":    {"?"},
	"log":     {"l"},
	"detail":  {"enter"},
	"diff":    {"d"},
	"confirm": {"a"},
	"form":    {"1", "e"},
	"filter":  {"/", "x"},
	"page":    {"o"},
	"applied": {"a", "y"},
}

func TestNoSizeBreaksTheFrame(t *testing.T) {
	for name, keys := range scenes {
		t.Run(name, func(t *testing.T) {
			m := &tunnel{shown: "a finding that is long enough to be broken over some lines, with-a-word-that-has-no-space-in-it-whatsoever-and-goes-on 日本語の名前"}
			onStage(t, m.options(t), 80, 24, func(p *play) {
				p.press(keys...)
				sweep(p)
			})
		})
	}
}

func TestNoSizeBreaksThePages(t *testing.T) {
	for name, keys := range map[string][]string{"guides": {}, "sides": {"enter"}, "second": {"enter", "enter"}, "name": {"enter", "enter", "enter"}} {
		t.Run(name, func(t *testing.T) {
			o := clusters(t)
			o.Notes = []string{"a note of whoever started this, which is long enough to be wrapped in a terminal"}
			onStage(t, o, 80, 24, func(p *play) {
				p.press(keys...)
				sweep(p)
			})
		})
	}
}

// sweep looks at the frame in many sizes.
func sweep(p *play) {
	for w := 20; w <= 200; w += 7 {
		for h := 5; h <= 60; h += 3 {
			p.resize(w, h)
			p.unbroken()
			if p.t.Failed() {
				p.t.Fatal(fmt.Sprintf("%d×%d\n", w, h) + p.screen())
			}
		}
	}
}
