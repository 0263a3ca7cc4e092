// Package steps is the vocabulary of guides.
//
// A [Guide] is data: steps in order, each with questions, facts, actions and checks. A check returns a [Result], an
// [Action] plans a [Change], and both see only an [Env]. The package does no I/O. The only packages of carrick that it
// imports are those under cluster, whose clusters and hosts an Env contains.
//
// Read the files in this order: guide.go (guides and steps), question.go (questions), check.go (verdicts), action.go
// (changes), env.go (what checks and actions see), cell.go (a check on one side), entry.go and ownership.go (what
// changes leave behind). The README has a glossary. These packages build on this one:
//
//   - action: what actions do, such as applying a manifest or installing a chart
//   - check: checks that guides share
//   - certs: actions that issue certificates
//   - inventory: what a link has created, and the marks on it
//   - linkfile: the file of a link
//   - facts: the facts file that one admin gives to the other
//   - engine: the session that runs a guide
//   - guides: one folder per guide
//   - stepstest: tests of guides
package steps
