// Package toy tests what the front ends do in every guide, on a guide that is applied in a second.
package toy

import (
	"testing"

	"carrick/cmd/carrick/carricktest"
)

func TestMain(m *testing.M) { carricktest.Main(m, map[string]func(){"carrick-toy": toyMain}) }
