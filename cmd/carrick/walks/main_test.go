// Package walks tests the real guides from start to end: from a scenario of the sandbox until all checks pass, and the
// undo.
package walks

import (
	"testing"

	"carrick/cmd/carrick/carricktest"
)

func TestMain(m *testing.M) { carricktest.Main(m, nil) }
