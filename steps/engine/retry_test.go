package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"carrick/cluster/failure"
	"carrick/steps"
)

func TestASilentAPIServerIsWaitedFor(t *testing.T) {
	silent := fmt.Errorf("read a Secret: %w", &failure.StaleError{Since: time.Now(), Cause: errors.New("no answer")})
	other := errors.New("forbidden")
	for _, tc := range []struct {
		situation string
		err       error
		fails     int // times; -1: always
		tries     int
		want      error
	}{
		{"it answers", nil, 0, 1, nil},
		{"it answers after three seconds", silent, 3, 4, nil},
		{"it never answers", silent, -1, 31, silent},
		{"it refuses", other, -1, 1, other},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries, said := 0, 0
				err := waitOut(t.Context(), func(steps.Event) { said++ }, func() error {
					if tries++; tc.fails < 0 || tries <= tc.fails {
						return tc.err
					}
					return nil
				})
				if !errors.Is(err, tc.want) || tries != tc.tries {
					t.Errorf("%v after %d tries", err, tries)
				}
				if waits := tries > 1; (said == 1) != waits {
					t.Errorf("it was said %d times", said)
				}
			})
		})
	}
	t.Run("nobody waits any more", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := waitOut(ctx, nil, func() error { return silent }); !errors.Is(err, silent) {
			t.Error(err)
		}
	})
}
