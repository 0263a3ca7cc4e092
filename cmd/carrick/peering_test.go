package main

import "testing"

var throughLiqo = walk{
	steps: 9,
	titles: map[int]string{
		2: "Tenant namespaces", 3: "Network configuration", 4: "Gateway keys", 5: "Tunnel", 6: "Credentials", 7: "Authentication", 8: "Resources", 9: "Offloading",
	},
}

const (
	allGreen  = `(8|9|10)[0-9] ok · 1[0-9] skipped`
	nothingOf = `2 failed · 1 warning · [5-9][0-9] skipped`
)

// liqoByKeys goes from two clusters with Liqo to an offloaded namespace, all green, and back to nothing. The consumer is
// answered to listen for the tunnel.
func liqoByKeys(t *testing.T) {
	w := throughLiqo
	w.before = map[int]func(*terminal){5: func(p *terminal) {
		p.types("e")
		p.wait(`Which side listens`)
		p.types("\x1b[C") // the other choice
		p.types("\x13")
		p.wait(`a apply`)
	}}
	p := demoLent(t, "liqo")
	p.wait(beginning)
	p.types("\r")
	w.apply(p, 1, 9)
	p.wait(allGreen)
	w.undo(p)
	p.wait(nothingOf)
	p.quits()
}
