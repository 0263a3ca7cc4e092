package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"carrick/cluster/sandbox/roles"
)

// call is a request to run kubectl, and called is its result. Each connection to the socket carries one of each, in
// JSON. In is the standard input, to which an argument "-" refers.
type call struct {
	Args []string
	In   string
}

type called struct {
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
				var c call
				if json.NewDecoder(conn).Decode(&c) == nil {
					_ = json.NewEncoder(conn).Encode(runKubectl(dir, c))
				}
			}()
		}
	}()
	return socket, nil
}

func runKubectl(dir string, c call) called {
	args, remove, err := withInput(dir, c)
	if err != nil {
		return called{Err: err.Error(), Code: 1}
	}
	defer remove()
	var stdout, stderr lockedBuffer
	code := roles.RunKubectl(args, genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &stdout, ErrOut: &stderr})
	return called{Out: stdout.String(), Err: stderr.String(), Code: code}
}

// withInput returns the arguments with a temporary file in place of "-". kubectl would read this process's own standard
// input.
func withInput(dir string, c call) (args []string, remove func(), err error) {
	remove = func() {}
	for _, arg := range c.Args {
		if arg != "-" {
			args = append(args, arg)
			continue
		}
		file, err := os.CreateTemp(filepath.Join(dir, "tmp"), "input-*.yaml")
		if err != nil {
			return nil, remove, err
		}
		remove = func() { _ = os.Remove(file.Name()) }
		_, err = file.WriteString(c.In)
		if err == nil {
			err = file.Close()
		}
		if err != nil {
			return nil, remove, err
		}
		args = append(args, file.Name())
	}
	return args, remove, nil
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
