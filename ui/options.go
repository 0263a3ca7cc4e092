package ui

import (
	"errors"
	"io"
	"time"

	"carrick/ui/model"
)

// Options are the options of the interactive wizard. If In or Out is not a terminal, Run returns ErrNoTerminal.
type Options struct {
	model.Options
	Version string // carrick's version, for reports; "" if unknown
	Walk    *Walk  // configures autoplay; nil if autoplay is off
	Color   string // auto (the default), always or never
	Theme   string // one of Themes; the default is auto, which depends on the terminal's background
	Err     io.Writer

	replyWithin time.Duration // timeout for the terminal's reply about its background; 0 means groundWithin
}

var (
	// ErrInterrupted is returned if the user left with ctrl+c.
	ErrInterrupted = errors.New("interrupted")
	// ErrNoTerminal is returned if there is no terminal for the wizard.
	ErrNoTerminal = errors.New("the wizard requires a terminal; carrick check, diff, apply and undo do not")
)
