package interlink_test

import "carrick/steps/stepstest"

// rowsB are the rows of the endpoint, its certificates and the plugin.
var rowsB = []stepstest.Row{}
