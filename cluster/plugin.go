package cluster

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/transport"

	"carrick/cluster/failure"
)

// lastWords is how long Close waits for the last output of an exec plugin.
const lastWords = 100 * time.Millisecond

// stderrSwap guards os.Stderr, which carrick replaces while client-go prepares an exec plugin.
var stderrSwap sync.Mutex

// transportConfig returns the transport configuration for c.config. It redirects the standard error of an exec plugin
// to stderr, because the terminal UI might be using os.Stderr. client-go has no option for this. When client-go
// prepares a plugin, it uses the current value of os.Stderr.
func (c *Cluster) transportConfig(stderr io.Writer) (*transport.Config, error) {
	if c.config.ExecProvider == nil {
		return c.config.TransportConfig()
	}
	plugin := c.config.ExecProvider.DeepCopy()
	plugin.InteractiveMode = c.config.ExecProvider.InteractiveMode
	plugin.StdinUnavailable = true
	plugin.StdinUnavailableMessage = "carrick uses the terminal"
	// client-go shares a prepared plugin between equal configurations. This variable makes the configuration unique, so
	// that the plugin's output goes to this cluster's stderr.
	plugin.Env = append(slices.Clone(plugin.Env), clientcmdapi.ExecEnvVar{Name: "CARRICK_PLUGIN", Value: rand.Text()})
	c.config.ExecProvider = plugin
	out, err := c.pluginStderr(stderr)
	if err != nil {
		return nil, fmt.Errorf("prepare exec plugin %q: %w", plugin.Command, err)
	}
	stderrSwap.Lock()
	defer stderrSwap.Unlock()
	terminal := os.Stderr
	os.Stderr = out
	defer func() { os.Stderr = terminal }()
	return c.config.TransportConfig()
}

// pluginStderr returns a file for the output of an exec plugin. The output is copied to w until the cluster is closed.
func (c *Cluster) pluginStderr(w io.Writer) (*os.File, error) {
	if file, ok := w.(*os.File); ok {
		return file, nil
	}
	if w == nil {
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		c.plugin.stderr = null
		return null, err
	}
	r, file, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c.plugin.stderr = file
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(w, r)
	}()
	c.atEnd = append(c.atEnd, func() {
		// A process that the plugin started might still have the other end of the pipe open.
		_ = r.SetReadDeadline(time.Now().Add(lastWords))
		<-copied
		_ = r.Close()
	})
	return file, nil
}

// plugin counts the round trips that can run an exec plugin. If a plugin hangs, client-go's round trip hangs too and
// ignores its context. Therefore each round trip has its own goroutine, which is abandoned when the context ends. The
// file for the plugin's output is closed only after the last round trip.
type plugin struct {
	mu     sync.Mutex
	trips  int
	closed bool
	stderr *os.File // closed after the last round trip; nil: none
}

func (p *plugin) enter() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return failure.ErrClosed
	}
	p.trips++
	return nil
}

func (p *plugin) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trips--
	p.closeLast()
}

// close makes the plugin reject further round trips.
func (p *plugin) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		p.closeLast()
	}
}

func (p *plugin) closeLast() {
	if p.closed && p.trips == 0 && p.stderr != nil {
		_ = p.stderr.Close()
	}
}

// apart is an http.RoundTripper that runs each round trip in its own goroutine and abandons it when the context ends.
type apart struct {
	next   http.RoundTripper
	plugin *plugin
}

type roundTrip struct {
	resp *http.Response
	err  error
}

// RoundTrip implements http.RoundTripper.
func (a apart) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := a.plugin.enter(); err != nil {
		return nil, err
	}
	done := make(chan roundTrip, 1)
	go func() {
		defer a.plugin.leave()
		defer func() {
			if p := recover(); p != nil {
				done <- roundTrip{err: fmt.Errorf("%w: %v", failure.ErrPanicked, p)}
			}
		}()
		resp, err := a.next.RoundTrip(req)
		done <- roundTrip{resp, err}
	}()
	select {
	case rt := <-done:
		return rt.resp, rt.err
	case <-req.Context().Done():
		go func() {
			if rt := <-done; rt.resp != nil {
				_ = rt.resp.Body.Close()
			}
		}()
		return nil, context.Cause(req.Context())
	}
}
