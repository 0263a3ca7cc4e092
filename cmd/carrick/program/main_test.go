// Package program tests carrick on a terminal, with interrupts, without a login and before a demo. It needs no control
// planes, except for the tests of how a demo ends.
package program

import (
	"testing"

	"carrick/cmd/carrick/carricktest"
)

func TestMain(m *testing.M) { carricktest.Main(m, nil) }
