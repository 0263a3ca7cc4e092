package interlink

import "carrick/steps"

func plugin() steps.Step {
	return steps.Step{
		Name: "plugin", Title: "Plugin",
		Why: "w",
		Ask: []steps.Question{
			{Key: "plugin.config", Title: "The plugin's configuration", Kind: steps.Path, Help: "h", On: steps.Remote, Default: steps.Fixed("/root/.interlink/config/SlurmConfig.yaml", "upstream")},
			{Key: "plugin.shared-fs", Title: "Compute nodes share its data folder", Kind: steps.YesNo, Help: "h", On: steps.Remote, Default: steps.Fixed(true, "recommended")},
			{Key: "plugin.unit", Title: "The plugin's systemd unit", Kind: steps.Text, Help: "h", On: steps.Remote, Opt: true},
		},
	}
}
