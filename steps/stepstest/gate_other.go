//go:build !linux || !amd64

package stepstest

import (
	"errors"
	"os/exec"
)

var errNoGate = errors.New("this test requires Linux on amd64, because it intercepts system calls")

func gates() error                     { return errNoGate }
func (g *gate) before(*exec.Cmd) error { return errNoGate }
func (g *gate) watch() error           { return errNoGate }
