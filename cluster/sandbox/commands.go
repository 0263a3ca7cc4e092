package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"carrick/cluster/sandbox/scenario"
	"carrick/cluster/sandbox/world"
)

const commandWithin = 9 * time.Minute

// errInputEnded is the cancellation cause when standard input is closed. This is the normal way to stop a sandbox.
var errInputEnded = errors.New("standard input was closed")

// read sends each line of in to the returned channel. At the end of in, it calls cancel with errInputEnded.
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

// ending returns why ctx was canceled. It returns nil for a signal and for the end of standard input, which are the
// normal ways to stop a sandbox.
func ending(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, errInputEnded) || errors.Is(cause, context.Canceled) {
		return nil
	}
	return cause
}

type reply struct {
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
	// Faults answers the command faults.
	Faults []fault `json:"faults,omitempty"`
	scenario.Told
}

// fault describes one fault of a scenario. Title is one sentence. Late is true if the fault breaks a finished set-up, so
// the set-up must exist first.
type fault struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Late  bool   `json:"late,omitempty"`
}

// listed returns the faults of a scenario in the order of their names.
func listed(name string, faults map[string]string) []fault {
	var list []fault
	for _, f := range slices.Sorted(maps.Keys(faults)) {
		list = append(list, fault{f, faults[f], scenario.Late(name, f)})
	}
	return list
}

// desk executes the commands from standard input.
type desk struct {
	sides map[string]*side
	stage *scenario.Stage
}

func (d desk) answer(ctx context.Context, line string) reply {
	ctx, cancel := context.WithTimeout(ctx, commandWithin)
	defer cancel()
	words := strings.Fields(line)
	if len(words) == 2 && words[0] == "faults" && slices.Contains(world.Scenarios(), words[1]) {
		faults, err := d.stage.Faults(words[1])
		if err == nil {
			return reply{OK: true, Faults: listed(words[1], faults)}
		}
		return reply{Error: err.Error()}
	}
	if err := d.obey(ctx, words); err != nil {
		return reply{Error: err.Error()}
	}
	if words[0] == "seed" {
		return reply{OK: true, Told: d.stage.Told(words[1])}
	}
	return reply{OK: true}
}

func (d desk) obey(ctx context.Context, words []string) error {
	said := strings.Join(words, " ")
	words = append(words, "", "", "", "")
	verb, object, detail := words[0], words[1], words[2]
	switch {
	case words[3] != "" || (detail != "" && verb != "seed"):
	case verb == "stop" && d.sides[object] != nil:
		return d.sides[object].StopAPIServer(ctx)
	case verb == "start" && d.sides[object] != nil:
		return d.sides[object].StartAPIServer(ctx)
	case verb == "seed" && slices.Contains(world.Scenarios(), object):
		return d.seed(ctx, object, detail)
	case verb == "reset" && object == "":
		return d.reset(ctx)
	}
	return fmt.Errorf(
		"unknown command %q: use stop SIDE, start SIDE, reset, seed SCENARIO [FAULT] or faults SCENARIO; sides: local, "+
			"remote; scenarios: %s",
		said, strings.Join(world.Scenarios(), ", "),
	)
}

// seed applies a scenario to both clusters and waits until everything is ready. If fault is not "", it also applies
// that fault.
func (d desk) seed(ctx context.Context, scenario, fault string) error {
	for _, s := range d.sides {
		if s.Stopped() {
			return fmt.Errorf("the API server of %s is stopped", s.Name)
		}
	}
	return d.stage.Seed(ctx, scenario, fault)
}

// reset stops all fakes, starts stopped API servers, and resets both clusters concurrently.
func (d desk) reset(ctx context.Context) error {
	d.stage.Reset()
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
