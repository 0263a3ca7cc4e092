// Package leash sees to it that nothing of a sandbox outlives it, however it
// ends: no process, no folder.
//
// The first child of a sandbox is its keeper. It holds the read end of a pipe
// of which only the sandbox has the write end, so it learns of the sandbox's
// end even when that was a kill -9. The other children hold a connection to
// the keeper's socket. When the pipe closes, the keeper kills whoever is
// connected, removes the folder and exits. When the keeper itself is killed,
// its children find their connection closed, remove the folder and exit; a
// child that comes too late finds no socket, and does the same.
//
// Pipes and sockets close with the process that holds them on every system,
// which cannot be said of Linux's parent death signal.
package leash

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Variable names the environment variable by which a child finds its sandbox's
// folder.
const Variable = "CARRICK_SANDBOX_DIR"

const (
	goneIn    = 5 * time.Second       // how long a killed process may take
	tryAgain  = 20 * time.Millisecond // between two attempts to remove the folder
	keeperArg = "carrick-sandbox-keeper"
)

func socket(dir string) string { return filepath.Join(dir, "leash") }

// Hold ties this process to the sandbox that the environment names: when that
// ends, so does this process and every other in its process group, if it
// leads one. It does nothing where no sandbox is named.
func Hold() {
	dir := os.Getenv(Variable)
	if dir == "" {
		return
	}
	conn, err := net.Dial("unix", socket(dir))
	if err != nil {
		end(dir)
	}
	if _, err := fmt.Fprintln(conn, os.Getpid()); err != nil {
		end(dir)
	}
	go func() {
		_, _ = io.Copy(io.Discard, conn) // nothing is ever sent: returns when the keeper is gone
		end(dir)
	}()
}

// end is the last act of a child whose keeper is gone.
func end(dir string) {
	_ = remove(dir)
	kill(os.Getpid())
	os.Exit(1)
}

// kill kills the process pid, with the process group that it leads, if any.
func kill(pid int) {
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// remove removes dir, again and again while dying processes still write to it.
func remove(dir string) error {
	deadline := time.Now().Add(goneIn)
	for {
		err := os.RemoveAll(dir)
		if _, missing := os.Lstat(dir); os.IsNotExist(missing) {
			return nil
		}
		if time.Now().After(deadline) {
			return err
		}
		time.Sleep(tryAgain)
	}
}
