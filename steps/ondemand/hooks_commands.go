package ondemand

import "carrick/steps"

// portalCommands are what is run on the web node once the files stand.
func portalCommands() []steps.Action { return nil }
