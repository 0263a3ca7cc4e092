package steps_test

import (
	"testing"

	"carrick/steps"
)

func TestOddAnswersAreRefused(t *testing.T) {
	many := steps.Question{Kind: steps.Name, Many: true}
	for name, c := range map[string]struct {
		q steps.Question
		v any
	}{
		"nothing but separators":   {many, " , ,"},
		"an empty list":            {many, []any{}},
		"a list with an empty one": {many, []any{""}},
		"a negative quantity":      {steps.Question{Kind: steps.Quantity}, "-5"},
		"an address without host":  {steps.Question{Kind: steps.URL}, "https://:443"},
		"an address of port 0":     {steps.Question{Kind: steps.URL}, "https://h:0"},
		"an address of a far port": {steps.Question{Kind: steps.URL}, "https://h:99999"},
		"an address with a space":  {steps.Question{Kind: steps.URL}, "https://a b"},
		"a float for a port":       {steps.Question{Kind: steps.Port}, 1.5},
		"a port in words":          {steps.Question{Kind: steps.Port}, "https"},
		"a bool for a name":        {steps.Question{Kind: steps.Name}, true},
		"white space":              {steps.Question{Kind: steps.Text}, "   "},
	} {
		t.Run(name, func(t *testing.T) {
			if s, typed := c.v.(string); typed {
				if got, err := c.q.Parse(s); err == nil {
					t.Errorf("typed, it becomes %#v", got)
				}
			}
			if got, err := c.q.Accept(c.v); err == nil {
				t.Errorf("in a link file, it becomes %#v", got)
			}
		})
	}
}

func TestAnOptionalListMayBeEmpty(t *testing.T) {
	q := steps.Question{Kind: steps.Label, Many: true, Opt: true}
	if got, err := q.Accept([]any{}); err != nil || got == nil {
		t.Errorf("an empty list in place of a default: %#v, %v", got, err)
	}
	if got, err := q.Parse(" , "); err != nil || got != nil {
		t.Errorf("nothing typed: %#v, %v", got, err)
	}
	if got, err := (&steps.Question{Kind: steps.URL}).Accept("https://[::1]:6443/x"); err != nil {
		t.Errorf("%v, %v", got, err)
	}
}
