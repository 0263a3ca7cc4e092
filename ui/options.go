package ui

import (
	"errors"
	"io"

	"carrick/ui/model"
)

// Options are the options of the interactive wizard. In and Out must be terminals, else Run returns ErrNoTerminal.
type Options struct {
	model.Options
	Version string // of carrick, for reports; "": unknown
	Walk    *Walk  // play the guide automatically; nil: wait for keys
	Color   string // auto (""), always or never
	Theme   string // one of Themes; "" is auto, according to the terminal's background
	Err     io.Writer
}

var (
	// ErrInterrupted means that the user left with ctrl+c.
	ErrInterrupted = errors.New("interrupted")
	// ErrNoTerminal means that there is no terminal for the wizard.
	ErrNoTerminal = errors.New("the wizard requires a terminal; carrick check, diff, apply and undo do not")
)
