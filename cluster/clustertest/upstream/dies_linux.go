package upstream

import (
	"os/exec"
	"syscall"
)

// diesWithTest makes the kernel kill a program when the test process ends, even if it crashes.
func diesWithTest(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
