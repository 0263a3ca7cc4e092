package ui

import (
	"errors"
	"io"

	"carrick/ui/model"
)

// Options are what the wizard on a screen is made of. In and Out are both
// terminals, else Run returns ErrNoTerminal.
type Options struct {
	model.Options
	Version string // of carrick, for reports; "": not said
	Walk    *Walk  // the wizard walks by itself; nil: it waits for keys
	Color   string // auto (""), always or never
	Theme   string // one of Themes; "" is auto: what fits the terminal's background
	Err     io.Writer
}

var (
	// ErrInterrupted says that the user left with ctrl+c.
	ErrInterrupted = errors.New("interrupted")
	// ErrNoTerminal says that there is no terminal to show the wizard on.
	ErrNoTerminal = errors.New("the wizard needs a terminal; carrick check, diff, apply and undo do without")
)
