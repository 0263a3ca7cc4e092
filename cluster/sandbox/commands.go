package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/sandbox/standin"
	"carrick/cluster/sandbox/world"
)

const commandWithin = 2 * time.Minute

// errInputEnded is why a sandbox ends that nobody complained about.
var errInputEnded = errors.New("standard input ended")

// read returns the lines of in, and ends ctx by cancel when there are no more.
func read(in io.Reader, cancel context.CancelCauseFunc) <-chan string {
	lines := make(chan string)
	go func() {
		defer cancel(errInputEnded)
		for scanner := bufio.NewScanner(in); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	return lines
}

// ending returns why ctx ended, where that is an error: the end of input and
// a signal are how a sandbox is meant to end.
func ending(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, errInputEnded) || errors.Is(cause, context.Canceled) {
		return nil
	}
	return cause
}

// reply is the answer to a command.
type reply struct {
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
}

// desk answers commands.
type desk struct {
	sides map[string]*side
}

func (d desk) answer(ctx context.Context, line string) reply {
	ctx, cancel := context.WithTimeout(ctx, commandWithin)
	defer cancel()
	if err := d.obey(ctx, strings.Fields(line)); err != nil {
		return reply{Error: err.Error()}
	}
	return reply{OK: true}
}

func (d desk) obey(ctx context.Context, words []string) error {
	verb, object := "", ""
	switch len(words) {
	case 1:
		verb = words[0]
	case 2:
		verb, object = words[0], words[1]
	}
	switch {
	case verb == "stop" && d.sides[object] != nil:
		return d.sides[object].StopAPIServer(ctx)
	case verb == "start" && d.sides[object] != nil:
		return d.sides[object].StartAPIServer(ctx)
	case verb == "seed" && slices.Contains(world.Scenarios(), object):
		return d.seed(ctx, object)
	case verb == "reset" && object == "" && len(words) == 1:
		return d.reset(ctx)
	}
	return fmt.Errorf("unknown command %q: want stop SIDE, start SIDE, reset or seed SCENARIO; "+
		"sides: local, remote; scenarios: %s", strings.Join(words, " "), strings.Join(world.Scenarios(), ", "))
}

// seed applies a scenario to both sides and returns when it stands.
func (d desk) seed(ctx context.Context, scenario string) error {
	for _, s := range d.sides {
		if s.Stopped() {
			return fmt.Errorf("the API server of %s is stopped", s.Name)
		}
		var extra []*unstructured.Unstructured
		if s.Name == "remote" {
			var err error
			if extra, err = s.measured(); err != nil {
				return err
			}
		}
		if err := s.world.Seed(ctx, scenario, extra...); err != nil {
			return err
		}
		if err := s.world.Settle(ctx); err != nil {
			return err
		}
	}
	return nil
}

// measured returns the objects of the metrics stand-in, and starts it the
// first time. There are none on a machine that has no address for it.
func (s *side) measured() ([]*unstructured.Unstructured, error) {
	if s.metrics == nil {
		var err error
		if s.metrics, err = standin.StartMetrics(s.FrontProxy); errors.Is(err, standin.ErrNoAddress) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	}
	return s.metrics.Objects(), nil
}

// reset starts what was stopped and brings both sides back, at the same time.
func (d desk) reset(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range d.sides {
		group.Go(func() error {
			if err := s.StartAPIServer(ctx); err != nil {
				return err
			}
			return s.world.Reset(ctx)
		})
	}
	return group.Wait()
}
