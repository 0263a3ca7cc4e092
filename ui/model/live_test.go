package model_test

import (
	"context"
	"sync/atomic"
	"testing"

	"carrick/cluster/host"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
	"carrick/ui/model"
)

// one returns the Live of a guide with one check.
func one(t *testing.T, run func(context.Context, steps.Env) steps.Result) (*model.Live, steps.Cell) {
	t.Helper()
	h, err := host.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	g := &steps.Guide{
		Name: "one", Title: "One",
		Sides: map[steps.Side]steps.Role{
			steps.Local: {Name: "here", Kind: steps.Host}, steps.Remote: {Name: "there", Kind: steps.Host, Optional: true},
		},
		Steps: []steps.Step{{
			Name: "one", Title: "One", Why: "w",
			Checks: []steps.Check{{Name: "it", Title: "it exists", Why: "w", On: steps.Local, Run: run}},
		}},
	}
	s := engine.NewSession(engine.SessionOptions{
		Guide: g, Link: linkfile.New("one", "l"), Endpoints: map[steps.Side]engine.Endpoint{steps.Local: {Host: h}},
	})
	t.Cleanup(s.Close)
	return model.NewLive(t.Context(), s), g.Cells()[0]
}

// If the check of a replaced chain ends before the check of the new chain, it must not end the new chain. Otherwise the
// cell would never be checked again and would keep its last verdict.
func TestAReplacedChainDoesNotEndTheLaterOne(t *testing.T) {
	var calls atomic.Int32
	running, finish := make(chan bool), make(chan bool)
	l, c := one(t, func(context.Context, steps.Env) steps.Result {
		if calls.Add(1) > 1 {
			return steps.Failed("it does not exist", "")
		}
		close(running)
		<-finish
		return steps.Passed("it exists")
	})
	replaced, current := l.Start()[0], l.Again(c)[0]
	went := make(chan bool)
	go func() { _, ok := l.Next(current); went <- ok }()
	<-running
	if _, ok := l.Next(replaced); ok {
		t.Error("the replaced chain goes on")
	}
	close(finish)
	if ok := <-went; !ok {
		t.Error("the later chain has ended")
	}
	if r := l.Board.Verdict(c); r.Status != steps.Pass {
		t.Errorf("the board says %s: %s", r.Status, r.Found)
	}
}
