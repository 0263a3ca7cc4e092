// Package model is what the wizard shows, on a screen or in lines of text: the
// board and the chains that keep it current, where to go on, what a finding
// says, what can be done now, and what a plan comes to. It draws nothing and
// reads no keys; packages ui and lines do.
//
// Read in this order: live.go (the board and its chains), standing.go (how far
// the set-up is), finding.go (what a verdict says), plan.go and run.go (changes).
package model
