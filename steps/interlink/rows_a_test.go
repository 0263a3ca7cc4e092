package interlink_test

import "carrick/steps/stepstest"

// rowsA are the rows of the virtual kubelet, its configuration, the workload and
// the test.
var rowsA = []stepstest.Row{}
