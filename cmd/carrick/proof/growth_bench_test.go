package proof

import (
	"io/fs"
	"slices"
	"testing"

	"carrick/assets"
	"carrick/cluster/clustertest"
	"carrick/cmd/carrick/guides"
	"carrick/steps"
	"carrick/steps/stepstest"
)

// BenchmarkGrowth measures checks of many links at once, for each guide.
func BenchmarkGrowth(b *testing.B) {
	box := clustertest.Start(b)
	many := []int{1, 10, 100}
	for _, g := range guides.All() {
		b.Run(g.Name, func(b *testing.B) {
			box.Reset(b)
			box.Seed(b, g.Name)
			files, err := fs.Sub(assets.FS, g.Name)
			if err != nil {
				b.Fatal(err)
			}
			answers := map[string]any{}
			if more := sites[g.Name]; more != nil {
				answers = more(b, box)
			}
			stepstest.Growth(b, box, g, files, answers, many, steps.ApplyOptions{TakeOver: slices.Contains(takers, g.Name)})
		})
	}
}
