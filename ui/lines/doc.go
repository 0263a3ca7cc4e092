// Package lines is the wizard without a screen: the same questions and the same
// model, in sentences, one a line, for those who listen, for pipes, and for
// terminals that can do no more. It moves no cursor, draws nothing and writes
// no escape sequence.
//
// Read in this order: options.go (Run), walk.go (what holds for the whole run),
// begin.go (a new link), step.go and choices.go (a step), changing.go and
// working.go (changes).
package lines
