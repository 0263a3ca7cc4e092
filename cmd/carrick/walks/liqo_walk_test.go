package walks

import (
	"testing"

	"carrick/cmd/carrick/carricktest"
)

var throughLiqo = carricktest.Walk{
	Steps: 9,
	Titles: map[int]string{
		2: "Tenant namespaces", 3: "Network configuration", 4: "Gateway keys", 5: "Tunnel", 6: "Credentials",
		7: "Authentication", 8: "Resources", 9: "Offloading",
	},
}

const (
	allGreen  = `(8|9|10)[0-9] ok( · [0-9]+ skipped)? +live`
	nothingOf = `1 warning · 2 to do · [3-9][0-9] later`
)

// liqoByKeys starts with two clusters with Liqo, applies the guide until a namespace is offloaded and all checks pass,
// and undoes it. The consumer listens for the tunnel.
func liqoByKeys(t *testing.T) {
	w := throughLiqo
	w.Before = map[int]func(*carricktest.Terminal){5: func(p *carricktest.Terminal) {
		p.Types("e")
		p.Wait(`Side that listens`)
		p.Types("\x1b[C") // the other choice
		p.Types("\x13")
		p.Wait(`a apply`)
	}}
	p := carricktest.LentDemo(t, "liqo")
	p.Wait(carricktest.Beginning)
	p.Types("\r")
	w.Apply(p, 1, 9)
	p.Wait(allGreen)
	w.Undo(p)
	p.Wait(nothingOf)
	p.Quits()
}

// Autoplay creates a peering, and all checks pass, without a key press of a person.
func liqoByAutoplay(t *testing.T) {
	p := carricktest.LentDemo(t, "liqo", "--autoplay", "--pace", "100")
	p.Reaches("That was the demo.")
	p.Wait(`✓ all checks pass|! no check fails, and `)
	p.Types("\x1b[D")
	p.Wait(`(?s)` + throughLiqo.On(9) + `.*` + allGreen)
	p.Quits()
}
