// Package toy tests the behavior of the front ends that does not depend on a guide. It uses a guide that can be applied
// in a second.
package toy

import (
	"testing"

	"carrick/cmd/carrick/carricktest"
)

func TestMain(m *testing.M) { carricktest.Main(m, map[string]func(){"carrick-toy": toyMain}) }
