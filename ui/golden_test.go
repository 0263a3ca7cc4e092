package ui

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// pictures lists the screens that are stored as golden files, each in three sizes.
var pictures = []struct {
	name  string
	fresh bool // a new link
	keys  []string
	after time.Duration
}{
	{name: "guides", fresh: true},
	{name: "sides", fresh: true, keys: []string{"enter", "enter"}},
	{name: "name", fresh: true, keys: []string{"enter", "enter", "enter"}},
	{name: "step"},
	{name: "green", keys: []string{"1"}},
	{name: "filtered", keys: []string{"/", "k", "e", "y", "s", "enter"}},
	{name: "steps", keys: []string{"S"}},
	{name: "form", keys: []string{"1", "e"}},
	{name: "form-wrong", keys: []string{"1", "e", "0", "tab"}},
	{name: "diff", keys: []string{"d"}},
	{name: "confirm", keys: []string{"a"}},
	{name: "running", keys: []string{"a", "y"}, after: time.Second},
	{name: "applied", keys: []string{"a", "y"}, after: 10 * time.Second},
	{name: "detail", keys: []string{"enter"}},
	{name: "help", keys: []string{"?"}},
	{name: "log", keys: []string{"a", "y", "l"}, after: 10 * time.Second},
	{name: "summary", keys: []string{"3", "n"}},
}

func TestGoldens(t *testing.T) {
	local := time.Local
	time.Local = time.UTC // clocks are shown
	defer func() { time.Local = local }()
	for _, c := range pictures {
		for _, size := range [][2]int{{60, 20}, {80, 24}, {120, 40}} {
			name := fmt.Sprintf("%s-%dx%d", c.name, size[0], size[1])
			t.Run(name, func(t *testing.T) {
				m := &tunnel{slow: 5 * time.Second}
				o := m.options(t)
				if c.fresh {
					o = clusters(t)
				}
				onStage(t, o, size[0], size[1], func(p *play) {
					if o.Link != nil {
						p.a.dir = filepath.Dir(o.Link.Path) // paths are said as from there
					}
					m.came = time.Now()
					p.press(c.keys...)
					p.after(c.after)
					p.golden(name)
					if p.a.run.busy() {
						p.press("ctrl+c")
						p.after(time.Second)
					}
				})
			})
		}
	}
}
