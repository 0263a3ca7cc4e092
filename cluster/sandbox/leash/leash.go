// Package leash ensures that a sandbox leaves no process and no directory behind, even if it is killed.
//
// The first child process of a sandbox is its keeper. The keeper reads from a pipe. Only the sandbox has the write end
// of the pipe, so the keeper notices when the sandbox exits, even after a kill -9. The other children keep a connection
// to the keeper's socket. When the pipe closes, the keeper kills all connected processes, removes the directory and
// exits. When the keeper itself is killed, the connections close. The children then remove the directory and exit. A
// child that starts too late finds no socket and does the same.
//
// The package uses pipes and sockets because every operating system closes them when a process exits. Linux's parent
// death signal is not portable.
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

// Variable is the environment variable with the path of the sandbox's directory. Child processes inherit it.
const Variable = "CARRICK_SANDBOX_DIR"

const (
	goneIn    = 5 * time.Second       // timeout for a killed process to exit
	tryAgain  = 20 * time.Millisecond // between two attempts to remove the directory
	keeperArg = "carrick-sandbox-keeper"
)

func socket(dir string) string { return filepath.Join(dir, "leash") }

// Hold ties this process to the sandbox whose directory is in Variable. When the sandbox exits, this process is
// killed. If it leads a process group, the whole group is killed. Hold does nothing if Variable is not set.
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
		_, _ = io.Copy(io.Discard, conn) // nothing is ever sent: blocks until the keeper exits
		end(dir)
	}()
}

func end(dir string) {
	_ = remove(dir)
	kill(os.Getpid())
	os.Exit(1)
}

// kill kills the process pid. If pid leads a process group, it kills the whole group.
func kill(pid int) {
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// remove removes dir. It retries as long as dying processes still write to it.
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
