package failure

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestSilent(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"no answer":          {fmt.Errorf("read a Secret: %w", &StaleError{Cause: ErrNoAnswer}), true},
		"an answer too late": {fmt.Errorf("read a Secret: %w", ErrTimeout), true},
		"refused":            {errors.New("forbidden"), false},
		"stopped by a user":  {context.Canceled, false},
		"nothing":            {nil, false},
	} {
		if got := Silent(tc.err); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
