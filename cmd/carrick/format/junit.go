package format

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"carrick/cmd/carrick/plain"
	"carrick/steps"
	"carrick/steps/engine"
)

// The JUnit document has one suite per step and one test case per cell.
type junitSuites struct {
	XMLName xml.Name `xml:"testsuites"`
	Name    string   `xml:"name,attr"`
	junitCounts
	Suites []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name string `xml:"name,attr"`
	junitCounts
	Timestamp string      `xml:"timestamp,attr"`
	Cases     []junitCase `xml:"testcase"`
}

type junitCounts struct {
	Tests    int     `xml:"tests,attr"`
	Failures int     `xml:"failures,attr"`
	Errors   int     `xml:"errors,attr"`
	Skipped  int     `xml:"skipped,attr"`
	Time     seconds `xml:"time,attr"`
}

// seconds is encoded with three decimals: "0.012".
type seconds float64

// MarshalText implements encoding.TextMarshaler.
func (s seconds) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%.3f", float64(s)), nil }

type junitCase struct {
	Class     string     `xml:"classname,attr"` // for example renku.identity
	Name      string     `xml:"name,attr"`      // for example role-binding@remote: The RoleBinding …
	Time      seconds    `xml:"time,attr"`
	Failure   *junitText `xml:"failure"`
	Error     *junitText `xml:"error"`
	Skipped   *junitText `xml:"skipped"`
	SystemOut string     `xml:"system-out,omitempty"`
}

type junitText struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// junit converts a report to JUnit. A cell that was not checked never counts as passed.
func junit(r engine.Report) junitSuites {
	out := junitSuites{Name: "carrick " + r.Guide + " " + r.Link}
	for _, c := range r.Checks {
		if n := len(out.Suites); n == 0 || out.Suites[n-1].Name != c.Step {
			out.Suites = append(out.Suites, junitSuite{Name: c.Step, Timestamp: r.Time.UTC().Format(time.RFC3339)})
		}
		suite := &out.Suites[len(out.Suites)-1]
		one := junitCell(r.Guide, c)
		suite.Cases = append(suite.Cases, one)
		suite.count(one)
		out.count(one)
	}
	return out
}

func (n *junitCounts) count(c junitCase) {
	n.Tests++
	n.Time += c.Time
	switch {
	case c.Failure != nil:
		n.Failures++
	case c.Error != nil:
		n.Errors++
	case c.Skipped != nil:
		n.Skipped++
	}
}

// junitCell converts one cell. Any verdict except pass and warning becomes a failure, an error or a skip.
func junitCell(guide string, c engine.ReportCheck) junitCase {
	one := junitCase{
		Class: guide + "." + c.Step, Name: fmt.Sprintf("%s@%s: %s", c.Check, c.Side, c.Title), Time: seconds(c.Seconds),
	}
	said := &junitText{Message: plain.OneLine(c.Found), Type: c.Status.String(), Text: junitDetail(guide, c)}
	switch c.Status {
	case steps.Pass:
	case steps.Warn:
		one.SystemOut = "warning: " + plain.OneLine(c.Found) + "\n" + said.Text
	case steps.Fail:
		if c.ToDo {
			said.Type = "todo"
		}
		one.Failure = said
	case steps.Skip:
		said.Type, said.Text = "", ""
		one.Skipped = said
	default: // unknown, waiting or not checked
		one.Error = said
	}
	return one
}

func junitDetail(guide string, c engine.ReportCheck) string {
	var b strings.Builder
	if c.Fix != "" {
		fmt.Fprintf(&b, "fix: %s\n", strings.TrimSpace(c.Fix))
	}
	if c.CausedBy != "" {
		fmt.Fprintf(&b, "caused by: %s\n", c.CausedBy)
	}
	fmt.Fprintf(&b, "why: carrick explain %s/%s\n", guide, c.Check)
	return b.String()
}

func printJUnit(w io.Writer, r engine.Report) error {
	b, err := xml.MarshalIndent(junit(r), "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, b)
	return err
}
