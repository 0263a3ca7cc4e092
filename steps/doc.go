// Package steps is the vocabulary of guides.
//
// A [Guide] is data: steps in order, each with questions, facts, actions and checks. A check returns a [Result], an
// [Action] plans a [Change], and both see no more than an [Env]. The package does no I/O, and imports nothing of
// carrick but package cluster, whose clusters and hosts an Env has.
//
// Read in this order: guide.go (guides and steps), question.go (questions), check.go (verdicts), action.go (changes),
// env.go (what checks and actions see), cell.go (a check on one side), entry.go and ownership.go (what changes leave
// behind). What guides are built from, and what runs them, is in these packages:
//
//   - action: what actions do, such as applying a manifest or installing a chart
//   - check: checks that guides share
//   - certs: actions that issue certificates
//   - inventory: what a link has created, and the marks on it
//   - linkfile: the file of a link
//   - facts: the file of facts that one admin gives to the other
//   - engine: the session that runs a guide
//   - guides: a folder for each guide
//   - stepstest: tests of guides
package steps
