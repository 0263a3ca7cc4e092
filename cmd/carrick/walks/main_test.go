// Package walks tests ways through the real guides, from a scenario of the sandbox to green and back.
package walks

import (
	"testing"

	"carrick/cmd/carrick/carricktest"
)

func TestMain(m *testing.M) { carricktest.Main(m, nil) }
