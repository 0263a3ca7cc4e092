// Package lines is the wizard without a screen: the same questions and the same model, as sentences, one per line, for
// screen readers, pipes and simple terminals. It moves no cursor, draws nothing and writes no escape sequence.
//
// Read in this order: options.go (Run), walk.go (the whole run), begin.go (a new link), step.go and choices.go (a
// step), changing.go and working.go (changes).
package lines
