package upstream

import (
	"os/exec"
	"syscall"
)

// diesWithTest has the kernel end a program with the test, however that ends.
func diesWithTest(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
