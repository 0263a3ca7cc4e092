package format

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"carrick/steps"
	"carrick/steps/engine"
)

// Each verdict becomes one kind of test case, and the totals match the cases.
func TestJUnit(t *testing.T) {
	r := engine.Report{Link: "milan-rome", Guide: "renku", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	for i, s := range []steps.Status{
		steps.Pass, steps.Warn, steps.Fail, steps.Skip, steps.Unknown, steps.Waiting, steps.Pending,
	} {
		r.Checks = append(r.Checks, engine.ReportCheck{
			Step: map[bool]string{true: "one", false: "two"}[i < 3], Check: "c-" + s.String(), Title: "it <holds> & \"stays\"",
			Side:   steps.Remote,
			Status: s, Found: "found\n]]> <b> " + s.String(), Fix: "do\nthis", Seconds: 0.5,
		})
	}
	var b bytes.Buffer
	if err := printJUnit(&b, r); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(
		b.String(),
		xml.Header+
			"<testsuites name=\"carrick renku milan-rome\" tests=\"7\" failures=\"1\" errors=\"3\" skipped=\"1\" "+
			"time=\"3.500\">",
	) {
		t.Errorf("it begins:\n%.200s", b.String())
	}
	var got junitSuites
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("this is not XML: %v\n%s", err, b.String())
	}
	if len(got.Suites) != 2 || got.Suites[0].Name != "one" || got.Suites[0].Tests != 3 || got.Suites[0].Failures != 1 ||
		got.Suites[1].Errors != 3 || got.Suites[1].Skipped != 1 {
		t.Fatalf("got %+v", got)
	}
	all := append(got.Suites[0].Cases, got.Suites[1].Cases...)
	for i, c := range all {
		status := r.Checks[i].Status
		if c.Class != "renku."+r.Checks[i].Step || c.Name != "c-"+status.String()+"@remote: it <holds> & \"stays\"" {
			t.Errorf("%s: %q %q", status, c.Class, c.Name)
		}
		part := map[steps.Status]*junitText{
			steps.Fail: c.Failure, steps.Skip: c.Skipped, steps.Unknown: c.Error, steps.Waiting: c.Error, steps.Pending: c.Error,
		}
		set := 0
		for _, p := range []*junitText{c.Failure, c.Error, c.Skipped} {
			if p != nil {
				set++
			}
		}
		switch want, other := part[status]; {
		case !other && (set != 0 ||
			(status == steps.Warn) != strings.Contains(c.SystemOut, "warning: found ]]> <b> warn\nfix: do\nthis\n")):
			t.Errorf("%s: %+v", status, c)
		case other && (set != 1 || want == nil || want.Message != "found ]]> <b> "+status.String()):
			t.Errorf("%s: %+v", status, c)
		}
	}
}
