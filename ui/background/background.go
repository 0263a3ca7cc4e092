// Package background keeps carrick from asking the terminal for its colours.
//
// bubbletea v1 asks while it is imported, so every command on a terminal, a
// plain --help too, would write an escape sequence and wait seconds where the
// terminal does not answer. Go initialises packages in the order of their
// import paths; this one comes before bubbletea and says what the background
// is, so nobody asks. The screen uses colours that read on either.
package background

import "github.com/charmbracelet/lipgloss"

func init() { lipgloss.SetHasDarkBackground(true) }
