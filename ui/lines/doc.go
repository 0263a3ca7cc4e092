// Package lines is the wizard without a screen, for screen readers, pipes and simple terminals. It asks the same
// questions as package ui and uses the same model. It prints sentences, one per line. It moves no cursor, draws nothing
// and writes no escape sequence.
//
// Read in this order: options.go (Run), walk.go (the main loop), begin.go (a new link), step.go and choices.go (a
// step), changing.go and working.go (changes).
package lines
