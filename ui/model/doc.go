// Package model is the model of both wizards, on a screen or in lines of text: the board and the chains that keep it
// current, the next step, findings, available actions, and plans. It draws nothing and reads no keys; packages ui and
// lines do.
//
// Read in this order: live.go (the board and its chains), standing.go (the state of the set-up), finding.go (verdicts),
// plan.go and run.go (changes).
package model
