// Package leash ensures that no process and no folder of a sandbox outlives it, however it ends.
//
// The first child of a sandbox is its keeper. It reads from a pipe whose write end only the sandbox has open, so it
// notices when the sandbox exits, even after a kill -9. The other children keep a connection to the keeper's socket.
// When the pipe closes, the keeper kills all connected processes, removes the folder and exits. When the keeper itself
// is killed, the children's connections close, and they remove the folder and exit. A child that starts too late finds
// no socket and does the same.
//
// Pipes and sockets are used because every system closes them when a process exits. Linux's parent death signal is not
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

// Variable is the environment variable with the path of the sandbox's folder, which children inherit.
const Variable = "CARRICK_SANDBOX_DIR"

const (
	goneIn    = 5 * time.Second       // timeout for a killed process to exit
	tryAgain  = 20 * time.Millisecond // between two attempts to remove the folder
	keeperArg = "carrick-sandbox-keeper"
)

func socket(dir string) string { return filepath.Join(dir, "leash") }

// Hold ties this process to the sandbox that the environment names. When the sandbox exits, this process is killed, and
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
		_, _ = io.Copy(io.Discard, conn) // nothing is ever sent: returns when the keeper has exited
		end(dir)
	}()
}

// end removes the folder and kills this process after its keeper has exited.
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
