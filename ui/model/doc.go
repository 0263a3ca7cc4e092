// Package model is what the wizard shows, on a screen or in lines of text: the
// board and the chains that keep it current, where to go on, what a finding
// says, what can be done now, and what a plan comes to. It draws nothing and
// reads no keys; packages ui and lines do.
package model
