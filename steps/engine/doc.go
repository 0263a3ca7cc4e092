// Package engine runs guides. A [Session] is one use of a guide between two sides: it probes checks and reports when to
// probe again, computes facts and answers, plans, applies and undoes changes, adopts existing set-ups and exports new
// ones. A [Board] turns the results of checks into verdicts. The package depends on no particular guide, screen or
// product.
//
// Read the files in this order: session.go (one probe), follow.go (all probes), board.go (verdicts), plan.go and
// apply.go (changes), resolve.go (facts and answers).
package engine
