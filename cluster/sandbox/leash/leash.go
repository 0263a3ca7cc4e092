// Package leash ensures that no process and no folder of a sandbox outlives it, however it ends.
//
// The first child of a sandbox is its keeper. It holds the read end of a pipe whose write end only the sandbox holds,
// so it notices the end of the sandbox even after a kill -9. The other children hold a connection to the keeper's
// socket. When the pipe closes, the keeper kills all connected processes, removes the folder and exits. When the keeper
// itself is killed, the children's connections close, and they remove the folder and exit. A child that starts too late
// finds no socket and does the same.
//
// On every system, pipes and sockets close with the process that holds them. Linux's parent death signal is not
// portable.
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

// Variable is the environment variable that tells a child its sandbox's folder.
const Variable = "CARRICK_SANDBOX_DIR"

const (
	goneIn    = 5 * time.Second       // timeout for the end of a killed process
	tryAgain  = 20 * time.Millisecond // between two attempts to remove the folder
	keeperArg = "carrick-sandbox-keeper"
)

func socket(dir string) string { return filepath.Join(dir, "leash") }

// Hold ties this process to the sandbox that the environment names. When the sandbox ends, this process is killed, and
// so is its process group if it leads one. Without such a sandbox, Hold does nothing.
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
		_, _ = io.Copy(io.Discard, conn) // nothing is ever sent: returns when the keeper has ended
		end(dir)
	}()
}

// end removes the folder and kills this process after its keeper has ended.
func end(dir string) {
	_ = remove(dir)
	kill(os.Getpid())
	os.Exit(1)
}

// kill kills the process pid and, if it leads a process group, the group.
func kill(pid int) {
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// remove removes dir. It retries while dying processes still write to it.
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
