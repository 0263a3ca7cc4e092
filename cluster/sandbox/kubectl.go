package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"carrick/cluster/sandbox/roles"
)

// kubectlCall and kubectlResult are what a connection to the socket carries, one of each, in JSON. In is the standard
// input, to which an argument "-" refers.
type kubectlCall struct {
	Args []string
	In   string
}

type kubectlResult struct {
	Out, Err string
	Code     int
}

// serveKubectl runs kubectl in this process for everyone who connects to the returned socket, until ctx is done. The
// tests run kubectl hundreds of times, and two thirds of the CPU time of a kubectl process is the initialization of
// this large binary. It returns "" if this build embeds no kubectl, or if the user has one.
func serveKubectl(ctx context.Context, dir string) (socket string, err error) {
	if _, theirs := roles.Asset(roles.Kubectl); theirs || roles.RunKubectl == nil {
		return "", nil
	}
	socket = filepath.Join(dir, "kubectl")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				var c kubectlCall
				if json.NewDecoder(conn).Decode(&c) == nil {
					_ = json.NewEncoder(conn).Encode(runKubectl(dir, c))
				}
			}()
		}
	}()
	return socket, nil
}

// runKubectl replaces an argument "-" by a temporary file with the input, because kubectl would read this process's own
// standard input.
func runKubectl(dir string, c kubectlCall) kubectlResult {
	if i := slices.Index(c.Args, "-"); i >= 0 {
		input, err := os.CreateTemp(filepath.Join(dir, "tmp"), "input-*.yaml")
		if err != nil {
			return kubectlResult{Err: err.Error(), Code: 1}
		}
		defer os.Remove(input.Name())
		_, err = input.WriteString(c.In)
		if err := errors.Join(err, input.Close()); err != nil {
			return kubectlResult{Err: err.Error(), Code: 1}
		}
		c.Args[i] = input.Name()
	}
	var stdout, stderr lockedBuffer
	code := roles.RunKubectl(c.Args, genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &stdout, ErrOut: &stderr})
	return kubectlResult{Out: stdout.String(), Err: stderr.String(), Code: code}
}

// lockedBuffer is a buffer for concurrent use. A warning of an API server can arrive after kubectl has returned.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
