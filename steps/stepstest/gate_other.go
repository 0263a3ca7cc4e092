//go:build !linux || !amd64

package stepstest

import (
	"errors"
	"os/exec"
)

var errNoGate = errors.New("only on Linux on amd64 can a test have the kernel ask")

func gates() error                     { return errNoGate }
func (g *gate) before(*exec.Cmd) error { return errNoGate }
func (g *gate) watch() error           { return errNoGate }
