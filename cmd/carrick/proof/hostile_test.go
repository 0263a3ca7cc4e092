package proof

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"carrick/cluster/clustertest/cases"
	"carrick/cluster/clustertest/hostile"
	"carrick/cmd/carrick/carricktest"
	"carrick/cmd/carrick/exit"
	"carrick/cmd/carrick/guides"
	"carrick/steps"
)

func pemOf(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// raw lists the parts of hostile texts that control a terminal and that carrick itself never writes.
var raw = []string{
	"\x1b]0;owned", "\x1b]52;c;cm0gLXJm", "\x1b]8;;https://evil", "\x1bP$qm", "\x1b[6n\x1b[c", "\x1b[1;1Hall is green",
	"\u009b", "\u0090", "\u009d",
	"\u202e", "\u2066", "\u200f", "\u061c", "\U000e0041", "\ufeff", "\u2028", "\x00after",
}

// Two clusters return hostile text in every field that people read. None of it reaches a terminal, a file or a log
// uncleaned.
func TestVerifyHostileClusters(t *testing.T) {
	t.Parallel()
	eachGuide(t, func(s site) {
		cases.LeftOut(s.T, "hostile", s.guide.Name)
		o := s.office()
		var paths []string
		for _, side := range steps.Sides {
			paths = append(paths, hostileServer(s.T, s.box, string(side), o.dir))
		}
		o.kubeconfig = "KUBECONFIG=" + strings.Join(paths, string(os.PathListSeparator))
		o.env = append(o.env, o.kubeconfig)
		for _, args := range [][]string{
			{"check", "link.yaml"},
			{"check", "link.yaml", "-o", "json"},
			{"check", "link.yaml", "-o", "yaml"},
			{"check", "link.yaml", "-o", "junit"},
			{"check", "link.yaml", "--wait", "2s"},
			{"diff", "link.yaml"},
			{"apply", "--dry-run", "link.yaml"},
			{"apply", "--yes", "link.yaml"},
			{"check", "link.yaml"},
			{"diff", "link.yaml"},
			{"export", "link.yaml", "out"},
			{"explain"},
			{screens},
			{"undo", "--yes", "link.yaml"},
		} {
			if args[0] == screens {
				cases.Run(s.T, "hostile", screens, func(t *testing.T) {
					one := *o
					one.T = t
					one.hostileScreens()
				})
				continue
			}
			cases.Run(s.T, "hostile", strings.Join(args, " "), func(t *testing.T) {
				h := o.run(carricktest.CommandWithin, args...)
				text := h.text.String()
				if bad := hostile.Unfit(text); bad != "" {
					t.Error(bad)
				}
				if text == "" {
					t.Error("it said nothing: this proves nothing")
				}
				for _, line := range hostile.Lines(text) {
					if len(line) > 8<<10 {
						t.Errorf("a line of %d bytes: %.200s", len(line), line)
						break
					}
				}
			})
		}
		cases.Run(s.T, "hostile", "files", func(t *testing.T) { o.cleanFiles(t) })
	})
}

// screens is the name of the wizard among the commands.
const screens = "the screen"

// hostileScreens goes through the wizard. No control sequence of a hostile text reaches the terminal, but the rest of
// the text does.
func (o *office) hostileScreens() {
	o.walkScreens("of hostile clusters")
	shown := o.runs[len(o.runs)-1].text.String()
	for _, mark := range raw {
		if at := strings.Index(shown, mark); at >= 0 {
			o.Errorf("%q reaches the terminal: %q", mark, shown[max(0, at-80):min(len(shown), at+80)])
		}
	}
	if !slices.ContainsFunc(
		[]string{"evil.example", "gnp.exe", "long long", "all is green"},
		func(word string) bool { return strings.Contains(shown, word) },
	) {
		o.Error("nothing that the clusters say was on the screen: this proves nothing")
	}
}

// cleanFiles fails the test if a file that carrick wrote contains text that is unsafe to display, or if a log entry has
// more than one line.
func (o *office) cleanFiles(t *testing.T) {
	t.Helper()
	n := map[string]int{}
	err := filepath.WalkDir(o.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), given) || strings.HasSuffix(d.Name(), ".kubeconfig") {
			return err
		}
		text, err := os.ReadFile(path)
		if bad := hostile.Unfit(string(text)); bad != "" {
			t.Errorf("%s: %s", d.Name(), bad)
		}
		n[filepath.Ext(path)]++
		if d.Name() == "audit.jsonl" {
			for _, line := range hostile.Lines(string(text)) {
				var entry struct{ Time time.Time }
				if json.Unmarshal([]byte(line), &entry) != nil || entry.Time.IsZero() {
					t.Errorf("no line of the audit log: %.200q", line)
				}
			}
		}
		return err
	})
	if err != nil || n[".jsonl"] != 1 || n[".log"] != 1 || n[".txt"] == 0 {
		t.Errorf("the files are %v: %v", n, err)
	}
}

// A kubeconfig in a Secret is written by anyone who can write the Secret. carrick runs no program from it, reads no
// file that it names, and does not connect to its servers. It reports such entries.
func TestVerifyForeignKubeconfigs(t *testing.T) {
	t.Parallel()
	eachGuide(t, func(s site) {
		cases.LeftOut(s.T, "hostile", s.guide.Name)
		o := s.office()
		if h := o.run(carricktest.CommandWithin, "apply", "--yes", "link.yaml"); h.code != 0 {
			s.Fatalf("apply: exit code %d:\n%s", h.code, h.text.String())
		}
		trap := newTrap(s.T)
		tried, named := 0, map[string]bool{}
		for _, side := range steps.Sides {
			for _, secret := range s.stored(side) {
				for key, value := range secret.Data {
					if !strings.Contains(string(value), "current-context") {
						continue
					}
					tried++
					for name, evil := range trap.kubeconfigs(string(value)) {
						at := string(side) + " " + secret.Metadata.Namespace + "/" + secret.Metadata.Name + " " + key + ": " + name
						cases.Run(s.T, "hostile", at, func(t *testing.T) {
							body, _ := json.Marshal(map[string]any{"data": map[string]any{key: []byte(evil)}})
							s.box.Run(
								t, string(side), "", "-n", secret.Metadata.Namespace, "patch", "secret", secret.Metadata.Name, "--type=merge",
								"-p", string(body),
							)
							for _, args := range [][]string{{"check", "link.yaml", "-o", "json"}, {"diff", "link.yaml"}} {
								h := o.run(carricktest.CommandWithin, args...)
								named[name] = named[name] || h.code != 0
							}
							trap.untouched(t)
						})
					}
					body, _ := json.Marshal(map[string]any{"data": map[string]any{key: value}})
					s.box.Run(
						s, string(side), "", "-n", secret.Metadata.Namespace, "patch", "secret", secret.Metadata.Name, "--type=merge",
						"-p", string(body),
					)
				}
			}
		}
		if tried == 0 {
			s.Skip("the guide puts no kubeconfig into a Secret")
		}
		for name := range trap.kubeconfigs("") {
			cases.Run(s.T, "hostile", "is named: "+name, func(t *testing.T) {
				if !named[name] {
					t.Error("all was green with it")
				}
			})
		}
	})
}

// Two carrick processes apply one link at the same time. The result is the same as with one process, and both report
// how they ended. The engine keeps them apart, so two guides are enough: one with rows of an API and one with files of
// a machine.
func TestVerifyTwoAtOnce(t *testing.T) {
	t.Parallel()
	two := slices.DeleteFunc(guides.All(), func(g *steps.Guide) bool { return g.Name != "renku" && g.Name != "ondemand" })
	eachOf(t, two, func(s site) {
		cases.LeftOut(s.T, "two at once", s.guide.Name)
		cases.Run(s.T, "hostile", "two at once", func(t *testing.T) {
			o := s.office()
			codes := make(chan *letOut, 2)
			for range 2 {
				one := *o
				one.T, one.runs = t, nil
				go func() { codes <- one.run(carricktest.CommandWithin, "apply", "--yes", "link.yaml") }()
			}
			for range 2 {
				h := <-codes
				if !slices.Contains([]int{0, exit.Other, exit.PartWay}, h.code) ||
					h.code != 0 && !strings.Contains(h.text.String(), "carrick: ") {
					t.Errorf("exit code %d:\n%s", h.code, h.text.String())
				}
				t.Logf("exit code %d: %s", h.code, lastLine(h.text.String()))
			}
			if h := o.run(carricktest.CommandWithin, "apply", "--yes", "link.yaml"); h.code != 0 {
				t.Errorf("afterwards: exit code %d:\n%s", h.code, h.text.String())
			}
			if h := o.run(carricktest.CommandWithin, "check", "link.yaml", "--wait", "5m"); h.code != 0 {
				t.Errorf("not green: exit code %d:\n%s", h.code, h.text.String())
			}
			if h := o.run(carricktest.CommandWithin, "apply", "--yes", "link.yaml"); h.code != 0 ||
				!strings.Contains(h.text.String(), "Nothing to change") {
				t.Errorf("there is something to do still: exit code %d:\n%s", h.code, h.text.String())
			}
			if h := o.run(carricktest.CommandWithin, "undo", "--yes", "link.yaml"); h.code != 0 {
				t.Errorf("undo: exit code %d:\n%s", h.code, h.text.String())
			}
			o.cleanAudit(t)
		})
	})
}

// cleanAudit fails the test if two concurrent writers broke each other's lines.
func (o *office) cleanAudit(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(o.dir, "state/carrick/audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range hostile.Lines(string(text)) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no line of the audit log: %.200q", line)
		}
	}
}

func lastLine(text string) string {
	lines := hostile.Lines(text)
	return strings.Join(lines[max(0, len(lines)-4):], " | ")
}
