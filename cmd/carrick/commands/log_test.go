package commands

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"carrick/cluster/clustertest/hostile"
)

// Text of a cluster that is unsafe to display does not reach the log. The handler quotes control characters, but not
// invisible letters.
func TestLogEntriesAreSafeToDisplay(t *testing.T) {
	var out strings.Builder
	log := slog.New(logTo(&out))
	said := "ad\u3164min \u2800 \x1b[31mred\u202e\nlevel=ERROR"
	log.Error("check", "err", errors.New(said), "text", said)
	if bad := hostile.Unfit(out.String()); bad != "" || !strings.Contains(out.String(), "admin") {
		t.Errorf("%s in %q", bad, out.String())
	}
	if n := len(hostile.Lines(out.String())); n != 1 {
		t.Errorf("one entry has %d lines: %s", n, out.String())
	}
}
