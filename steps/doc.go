// Package steps is carrick's vocabulary and its engine.
//
// A [Guide] is data: steps in order, each with questions, facts, actions and
// checks. A [Session] is one use of a guide between two sides. The engine
// probes checks and tells when to look again, plans and applies changes, and
// takes them back. It knows no guide by name, no screen and no product.
//
// Read in this order: guide.go (the words), check.go (verdicts), action.go
// (changes), session.go (the engine).
package steps
