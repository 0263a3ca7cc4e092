package format

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"carrick/cluster/clean"
	"carrick/cluster/clustertest/hostile"
	"carrick/cmd/carrick/plain"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/renku"
)

// Whatever a check finds, a report is one parseable document, and each cell is one line of the table.
func FuzzReports(f *testing.F) {
	for _, text := range hostile.Texts {
		f.Add(text, text)
	}
	g := renku.Guide()
	cell := g.Cells()[0]
	f.Fuzz(func(t *testing.T, found, fix string) {
		check, _ := g.Check(cell.Check)
		r := engine.Report{
			Kind: "CheckReport", Guide: g.Name, Link: "a", Time: time.Unix(0, 0).UTC(), Checks: []engine.ReportCheck{{
				ID: g.ID(cell), Step: cell.Step, Check: cell.Check, Title: check.Title, Side: cell.Side, Status: steps.Fail,
				State: engine.Failed,
				Found: clean.Text(found), Fix: clean.Text(fix),
			}},
		}
		for _, format := range []string{"table", "json", "yaml", "junit"} {
			var out strings.Builder
			if err := (Printer{Guides: []*steps.Guide{g}}).Report(&out, r, format); err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			text := out.String()
			if bad := hostile.Unfit(text); bad != "" {
				t.Errorf("%s: %s", format, bad)
			}
			var back engine.Report
			switch format {
			case "json":
				if err := json.Unmarshal([]byte(text), &back); err != nil || back.Checks[0].Found != r.Checks[0].Found ||
					back.Checks[0].Fix != r.Checks[0].Fix {
					t.Errorf("%v: %s", err, text)
				}
			case "yaml":
				if err := yaml.Unmarshal([]byte(text), &back); err != nil || back.Checks[0].Found != r.Checks[0].Found ||
					back.Checks[0].Fix != r.Checks[0].Fix {
					t.Errorf("%v: %s", err, text)
				}
			case "junit":
				readsAsJUnit(t, text)
			case "table":
				if n := strings.Count(text, "✗ fail"); n != 1+
					strings.Count(plain.OneLine(r.Checks[0].Found)+r.Checks[0].Fix, "✗ fail") {
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
