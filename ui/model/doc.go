// Package model is the model that both wizards share, package ui on a screen and package lines in lines of text. It
// contains the board and keeps the board current. It also determines the next step, findings, available actions, and
// plans. It draws nothing and reads no keys.
//
// Read in this order: live.go (the board and its check loops), standing.go (the state of the setup), finding.go
// (verdicts), plan.go and run.go (changes).
package model
