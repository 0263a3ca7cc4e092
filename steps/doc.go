// Package steps defines the types that make up a guide.
//
// A [Guide] is data. It has steps in order, each with questions, facts, actions and checks. A check returns a [Result],
// and an [Action] plans a [Change]. Both receive only an [Env]. The package does no I/O. It imports only the packages
// of carrick under cluster, because an Env contains clusters and hosts.
//
// Read the files in this order: guide.go (guides and steps), question.go (questions), check.go (verdicts), action.go
// (changes), env.go (input of checks and actions), cell.go (a check on one side), entry.go and ownership.go (records of
// changes). The README has a glossary. These packages build on this one:
//
//   - action: the implementations of actions, such as applying a manifest or installing a chart
//   - check: checks that guides share
//   - certs: actions that issue certificates
//   - inventory: the objects that a link has created, and their ownership labels
//   - linkfile: the file of a link
//   - facts: the facts file that one admin gives to the other
//   - engine: the session that runs a guide
//   - guides: one directory per guide
//   - stepstest: tests of guides
package steps
