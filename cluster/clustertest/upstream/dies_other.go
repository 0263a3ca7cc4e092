//go:build !linux

package upstream

import "os/exec"

func diesWithTest(*exec.Cmd) {}
