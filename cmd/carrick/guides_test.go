package main

import (
	"strings"
	"testing"

	"carrick/assets"
	"carrick/cmd/carrick/guides"
	"carrick/steps"
	"carrick/steps/engine"
)

// An answer that chooses an address, a program, an image or a chart is never used from another admin's facts file.
func TestNoFileChoosesWhatIsRun(t *testing.T) {
	found := 0
	for _, g := range guides.All() {
		for _, step := range g.Steps {
			for _, q := range step.Ask {
				chooses := q.Kind == steps.URL || q.Kind == steps.Path || strings.HasSuffix(q.Key, ".image") ||
					strings.HasSuffix(q.Key, ".source")
				if q.On != "" || !chooses || len(q.Of) > 0 { // one that is asked of a side counts for that side alone
					continue
				}
				if found++; !q.NotFromPeer {
					t.Errorf("%s: another admin's file chooses %s", g.Name, q.Key)
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("%d such questions: this proves nothing", found)
	}
}

func TestGuidesAreValid(t *testing.T) {
	if err := engine.Validate(guides.All(), assets.FS); err != nil {
		t.Fatal(err)
	}
}
