package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps/stepstest"
)

var throughLiqo = walk{
	steps: 9,
	titles: map[int]string{
		2: "Tenant namespaces", 3: "Network configuration", 4: "Gateway keys", 5: "Tunnel", 6: "Credentials", 7: "Authentication", 8: "Resources", 9: "Offloading",
	},
}

const (
	allGreen  = `8[0-9] ok · 1[0-9] skipped`
	nothingOf = `2 failed · 1 warning · 59 skipped`
)

// From two clusters with Liqo to an offloaded namespace by keys alone, all green,
// and back to nothing.
func TestAPeeringIsMadeByKeysAlone(t *testing.T) {
	for name, before := range map[string]map[int]func(*terminal){
		"the provider listens": nil,
		"the consumer listens": {5: func(p *terminal) {
			p.types("e")
			p.wait(`Which side listens`)
			p.types("\x1b[C") // the other choice
			p.types("\x13")
			p.wait(`a apply`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			stepstest.Among(t, name, "the provider listens")
			w := throughLiqo
			w.before = before
			p := demo(t, "liqo")
			p.wait(beginning)
			p.types("\r")
			w.apply(p, 1, 9)
			p.wait(allGreen)
			w.undo(p)
			p.wait(nothingOf)
			p.quits()
		})
	}
}

// A carrick that is killed in the middle leaves nothing that the next one can't go
// on from, and take back.
func TestAPeeringSurvivesAKill(t *testing.T) {
	box := clustertest.Start(t)
	box.Reset(t)
	box.Seed(t, "liqo")
	link := filepath.Join(t.TempDir(), "killed.yaml")
	text := strings.NewReplacer("{name: gitops}", "{name: killed}", "gitops-demo", "demo").Replace(peeringLink)
	if err := os.WriteFile(link, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	both := "KUBECONFIG=" + box.Kubeconfigs[clustertest.Local] + string(os.PathListSeparator) + box.Kubeconfigs[clustertest.Remote]
	first := onTerminal(t, both, link)
	first.wait(`step [12] of 9`) // the first that is not green, or was not a moment ago
	first.types("2")
	first.wait(throughLiqo.on(2))
	throughLiqo.apply(first, 2, 7)
	first.types("n")
	first.wait(throughLiqo.on(8))
	first.wait(canApply)
	first.types("a")
	first.wait(confirming)
	first.types("y")
	first.wait(`create ResourceSlice`)
	first.kill()
	<-first.ended

	second := onTerminal(t, both, link)
	second.wait(`step [89] of 9`) // it may be over with step 8 by now
	second.types("9")
	second.wait(throughLiqo.on(9))
	throughLiqo.apply(second, 9, 9)
	second.wait(allGreen)
	throughLiqo.undo(second)
	second.wait(nothingOf)
	second.types("q")
	if code := second.leaves(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
