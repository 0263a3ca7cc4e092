package program

import (
	"bytes"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"carrick/cmd/carrick/carricktest"
	"carrick/cmd/carrick/exit"
)

// timeout is the time limit for steps that take long only on failure.
const timeout = 5 * time.Minute

// promptly is far longer than an interrupted command takes to exit, even on a machine that is many times slower. It is
// far shorter than the time limits of commands that wait. For other commands the exit code shows that they were
// interrupted.
const promptly = time.Minute

// Every command exits soon after ctrl+c, even if an API server has accepted the connection and never responds.
func TestInterruptEndsWhatWaits(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"check link.yaml",
		"check link.yaml -o json",
		"check link.yaml --wait 10m",
		"check link.yaml --watch",
		"diff link.yaml",
		"apply link.yaml --yes",
		"undo link.yaml --yes",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			address, asked := silent(t)
			cmd := carricktest.Command(t, strings.Fields(line)...)
			carricktest.Login{Server: "https://" + address, User: "token: t"}.Write(t, cmd.Dir)
			var said bytes.Buffer
			cmd.Stderr = &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-asked:
			case <-time.After(timeout):
				t.Error("the API server was never asked")
			}
			began := time.Now()
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if took := time.Since(began); took > promptly {
				t.Errorf("it ended after %s", took)
			}
			if code := cmd.ProcessState.ExitCode(); code != exit.Interrupted {
				t.Errorf("exit code %d, not %d", code, exit.Interrupted)
			}
			if !strings.HasPrefix(said.String(), "carrick: interrupted") || strings.Count(said.String(), "\n") != 1 {
				t.Errorf("it said %q", said.String())
			}
		})
	}
}

// If the reader of the output exits early, no command reports an error about that.
func TestAReaderThatHasLeft(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"--help", "guides renku", "explain", "check link.yaml", "check link.yaml -o json"} {
		t.Run(line, func(t *testing.T) {
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			reader.Close()
			defer writer.Close()
			cmd := carricktest.Command(t, strings.Fields(line)...)
			carricktest.Login{Server: carricktest.NoServer, User: "token: t"}.Write(t, cmd.Dir)
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = writer, &said
			if err := cmd.Run(); err == nil {
				t.Error("exit code 0, and nothing was written")
			}
			if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGPIPE {
				t.Errorf("it ended with %v", cmd.ProcessState)
			}
			if said.Len() > 0 {
				t.Errorf("it said %q", said.String())
			}
		})
	}
}

// silent starts a server that accepts connections and never responds. asked is closed at the first connection.
func silent(t *testing.T) (address string, asked <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	first, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		var taken []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				break
			}
			if taken = append(taken, c); len(taken) == 1 {
				close(first)
			}
		}
		for _, c := range taken {
			c.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-ended
	})
	return l.Addr().String(), first
}
