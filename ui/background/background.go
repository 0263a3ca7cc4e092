// Package background prevents carrick from querying the terminal for its colors.
//
// bubbletea v1 sends a query when it is imported. Every command on a terminal, even --help, would write an escape
// sequence and wait for seconds if the terminal does not reply. Go initializes packages in the order of their import
// paths. This package comes before bubbletea and sets the background, so no query is sent. The screen uses colors that
// are readable on either background.
package background

import "github.com/charmbracelet/lipgloss"

func init() { lipgloss.SetHasDarkBackground(true) }
