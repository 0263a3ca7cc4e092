package carricktest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"sigs.k8s.io/yaml"

	"carrick/cmd/carrick/reference"
	"carrick/steps/engine"
)

var kinds = map[string]func() any{
	"Plan": func() any { return &engine.PlanReport{} }, "CheckList": func() any { return &reference.CheckList{} },
	"GuideList": func() any { return &reference.GuideList{} }, "Guide": func() any { return &reference.GuideOnly{} },
}

// document FORMAT KIND [WHAT VERB [DIFF]] fails unless the output is one document of the given kind without unknown
// fields. If WHAT is given, a plan must also contain a matching item with the verb VERB. WHAT and DIFF are regular
// expressions.
func document(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: document json|yaml KIND [WHAT VERB [DIFF]]")
	}
	doc, err := readDocument(args[0], args[1], ts.ReadFile("stdout"))
	ts.Check(err)
	if len(args) < 4 {
		return
	}
	seen := ""
	for _, a := range doc.(*engine.PlanReport).Actions {
		for _, it := range a.Items {
			if !regexp.MustCompile(args[2]).MatchString(it.What) {
				continue
			}
			seen = fmt.Sprintf("%s %s\n%s", it.Verb, it.What, it.Diff)
			if string(it.Verb) == args[3] && (len(args) < 5 || regexp.MustCompile(args[4]).MatchString(it.Diff)) {
				return
			}
		}
	}
	ts.Fatalf("the plan has no such item; the last item of that name: %s", seen)
}

func readDocument(format, kind, text string) (any, error) {
	if kinds[kind] == nil {
		return nil, fmt.Errorf("unknown kind %s", kind)
	}
	doc := kinds[kind]()
	if format == "yaml" {
		if json.Valid([]byte(text)) {
			return nil, errors.New("the document is JSON")
		}
		if err := yaml.UnmarshalStrict([]byte(text), doc); err != nil {
			return nil, err
		}
	} else {
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(doc); err != nil {
			return nil, err
		}
		if d.Decode(&struct{}{}) != io.EOF {
			return nil, errors.New("more than one document")
		}
	}
	var head struct{ APIVersion, Kind string }
	again, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(again, &head); err != nil || head.Kind != kind || head.APIVersion != reference.APIVersion {
		return nil, fmt.Errorf("the document is %s %s (%v)", head.APIVersion, head.Kind, err)
	}
	if format == "json" && !sameJSON(again, []byte(text)) {
		return nil, errors.New("reading and writing the document changed it")
	}
	return doc, nil
}

func sameJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	one, _ := json.Marshal(x)
	other, _ := json.Marshal(y)
	return bytes.Equal(one, other)
}
