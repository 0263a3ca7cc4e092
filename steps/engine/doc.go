// Package engine runs guides. A [Session] is one use of a guide between two sides: it probes checks and says when to
// probe again, works out facts and answers, plans, applies and undoes changes, adopts existing set-ups and exports new
// ones. A [Board] turns the results of checks into verdicts. The package knows no guide by name, no screen and no
// product.
//
// Read in this order: session.go (one probe), follow.go (all of them), board.go (verdicts), plan.go and apply.go
// (changes), resolve.go (facts and answers).
package engine
