// Package background prevents carrick from querying the terminal for its colors.
//
// bubbletea v1 sends a query when it is imported. Without this package, every command on a terminal, even --help, would
// write an escape sequence and wait for seconds if the terminal does not reply. Go initializes packages in the order of
// their import paths. This package is therefore initialized before bubbletea and sets the background, so that bubbletea
// sends no query. The screen uses colors that are readable on either background.
package background

import "github.com/charmbracelet/lipgloss"

func init() { lipgloss.SetHasDarkBackground(true) }
