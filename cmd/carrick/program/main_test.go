// Package program tests the program on a terminal, interrupted, without a login and before a demo: without control
// planes but for the ends of a demo.
package program

import (
	"testing"

	"carrick/cmd/carrick/carricktest"
)

func TestMain(m *testing.M) { carricktest.Main(m, nil) }
