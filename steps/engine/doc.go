// Package engine runs guides. A [Session] runs one guide between two sides. It probes checks and reports when to probe
// again. It computes facts and answers. It plans, applies and undoes changes, adopts existing setups and exports new
// ones. A [Board] turns the results of checks into verdicts. The package depends on no particular guide, screen or
// product.
//
// Read the files in this order: session.go (one probe), follow.go (all probes), board.go (verdicts), plan.go and
// apply.go (changes), resolve.go (facts and answers).
package engine
