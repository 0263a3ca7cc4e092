// Package proof tests what carrick does with hostile clusters, missing permissions and secrets, in every guide.
package proof

import (
	"testing"

	"carrick/cmd/carrick/carricktest"
)

func TestMain(m *testing.M) { carricktest.Main(m, nil) }
