package main

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"carrick/cluster"
	"carrick/cluster/clustertest/hostile"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

// Whatever is typed to a question of a guide is refused in words that show no
// secret, or is an answer that a link file keeps as it is.
func FuzzQuestions(f *testing.F) {
	type asked struct {
		guide *steps.Guide
		q     steps.Question
	}
	var all []asked
	for _, g := range guides() {
		for _, s := range g.Steps {
			for _, q := range s.Ask {
				all = append(all, asked{g, q})
				f.Add(uint(len(all)-1), "a, b.c")
				f.Add(uint(len(all)-1), "https://a.example.org:1/x?y#z")
				f.Add(uint(len(all)-1), hostile.Texts["clears the screen"])
				f.Add(uint(len(all)-1), "a: {b: [1, {c: d}]}\ne: 0x1\n")
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint, typed string) {
		at := all[which%uint(len(all))]
		v, err := at.q.Parse(typed)
		if err != nil {
			if text := strings.TrimSpace(typed); at.q.Secret && len(text) > 20 && strings.Contains(err.Error(), text) {
				t.Errorf("%s: the error shows what was typed: %v", at.q.Key, err)
			}
			if hostile.Unfit(cluster.Clean(err.Error())) != "" || err.Error() == "" {
				t.Errorf("%s: %q", at.q.Key, err)
			}
			return
		}
		if v == nil || at.q.Secret {
			return
		}
		l := linkfile.New(at.guide.Name, "a")
		l.Answers[at.q.Key] = v
		text, err := l.Marshal()
		if err != nil {
			t.Fatalf("%s: %#v can't be written: %v", at.q.Key, v, err)
		}
		again, err := linkfile.Parse("a.yaml", text, guides())
		if err != nil || !reflect.DeepEqual(again.Answers[at.q.Key], v) {
			t.Errorf("%s: %#v became %#v, %v, by\n%s", at.q.Key, v, again, err, text)
		}
	})
}

// Whatever is found, a report is one document that can be read again, and a line
// of the table is a line.
func FuzzReports(f *testing.F) {
	for _, text := range hostile.Texts {
		f.Add(text, text)
	}
	g := guides()[0]
	cell := g.Cells()[0]
	f.Fuzz(func(t *testing.T, found, fix string) {
		check, _ := g.Check(cell.Check)
		r := engine.Report{Kind: "CheckReport", Guide: g.Name, Link: "a", Time: time.Unix(0, 0).UTC(), Checks: []engine.ReportCheck{{
			ID: g.ID(cell), Step: cell.Step, Check: cell.Check, Title: check.Title, Side: cell.Side, Status: steps.Fail, Found: cluster.Clean(found), Fix: cluster.Clean(fix),
		}}}
		for _, format := range []string{"table", "json", "yaml", "junit"} {
			var out strings.Builder
			a := &app{out: &out, guides: guides()}
			if err := a.printReport(r, format); err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			text := out.String()
			if bad := hostile.Unfit(text); bad != "" {
				t.Errorf("%s: %s", format, bad)
			}
			var back engine.Report
			switch format {
			case "json":
				if err := json.Unmarshal([]byte(text), &back); err != nil || back.Checks[0].Found != r.Checks[0].Found || back.Checks[0].Fix != r.Checks[0].Fix {
					t.Errorf("%v: %s", err, text)
				}
			case "yaml":
				if err := yaml.Unmarshal([]byte(text), &back); err != nil || back.Checks[0].Found != r.Checks[0].Found || back.Checks[0].Fix != r.Checks[0].Fix {
					t.Errorf("%v: %s", err, text)
				}
			case "junit":
				readsAsJUnit(t, text)
			case "table":
				if n := strings.Count(text, "✗ fail"); n != 1+strings.Count(oneLine(r.Checks[0].Found)+r.Checks[0].Fix, "✗ fail") {
					t.Errorf("%d rows:\n%s", n, text)
				}
			}
		}
	})
}

func readsAsJUnit(t *testing.T, text string) {
	t.Helper()
	cases := 0
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "testcase" {
			cases++
		}
	}
	if cases != 1 {
		t.Errorf("%d cases:\n%s", cases, text)
	}
}
