// Package model is the model of both wizards, on a screen or in lines of text. It contains the board and keeps it
// current. It also determines the next step, findings, available actions, and plans. It draws nothing and reads no
// keys, which packages ui and lines do.
//
// Read in this order: live.go (the board and its chains), standing.go (the state of the setup), finding.go (verdicts),
// plan.go and run.go (changes).
package model
