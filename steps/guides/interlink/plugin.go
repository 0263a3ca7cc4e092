package interlink

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"carrick/steps"
	"carrick/steps/action"
)

// unitFolder is the directory of the systemd units that admins install.
const unitFolder = "/etc/systemd/system"

// slurmConfig is the configuration file that the plugin reads if neither its flag -SlurmConfigpath nor the variable
// SLURMCONFIGPATH is set (interlink-hq/interlink-slurm-plugin: pkg/slurm/func.go, f8451d93).
const slurmConfig = "/etc/interlink/SlurmConfig.yaml"

func plugin() steps.Step {
	return steps.Step{
		Name: "plugin", Title: "Plugin",
		Map: steps.MapRow{Remote: "plugin"},
		Why: "The virtual kubelet sends tokens and the CA with each pod, and the Slurm plugin mounts them only if its own " +
			"configuration sets ExportPodData. Where the plugin writes them decides who else on the compute nodes " +
			"can read them.",
		Ask: []steps.Question{
			{
				Key: "plugin.unit", Title: "The plugin's systemd unit", Kind: steps.Text, Opt: true, On: steps.Remote,
				Check: checkUnit,
				Help: "Enter the unit's name, such as slurm-plugin.service. Leave this empty if no unit starts the plugin: " +
					"carrick then neither restarts the plugin nor reads its log.",
				Default: steps.FromFact("plugin-unit", "from the unit that starts the plugin, in "+unitFolder),
			},
			{
				Key: "plugin.config", Title: "The plugin's configuration file", Kind: steps.Path, On: steps.Remote,
				Help: "Enter the file's path on the edge node. The plugin gets the path from its flag -SlurmConfigpath or its " +
					"variable SLURMCONFIGPATH. Without them it uses " + slurmConfig +
					". Upstream's cookbook uses $HOME/.interlink/manifests/plugin-config.yaml, its systemd guide " +
					"/opt/interlink/config/plugin-config.yaml.",
				Default: func(e steps.Env) (any, string) {
					if at, err := e.Own.Text("plugin-config-path"); err == nil {
						return at, "from the unit"
					}
					return slurmConfig, "the plugin's default"
				},
			},
			{
				Key: "plugin.shared-fs", Title: "SHARED_FS=true in the plugin's environment", Kind: steps.YesNo, On: steps.Remote,
				Help: "If yes, the plugin writes tokens to files in its DataRootFolder, which compute nodes must have at the " +
					"same path. If no, tokens are in the job scripts, which Slurm keeps.",
				Default: func(e steps.Env) (any, string) {
					v, err := e.Own.Text("plugin-shared-fs")
					if err != nil {
						return false, "upstream's default"
					}
					return v == "true", "from the unit"
				},
			},
		},
		Facts: []steps.Fact{
			{
				Name: "plugin-unit", Title: "the unit that starts the plugin", On: steps.Remote, Learn: learnUnit,
			},
			{
				Name: "plugin-config-path", Title: "the path of the plugin's configuration", On: steps.Remote,
				Learn: learnConfigPath,
			},
			{
				Name: "plugin-shared-fs", Title: "whether the plugin writes to a shared directory", On: steps.Remote, Shared: true,
				Learn: learnSharedFS,
			},
			{
				Name: "plugin-exports", Title: "whether the plugin mounts tokens and the CA", On: steps.Remote, Shared: true,
				Learn: learnExports,
			},
		},
		Actions: []steps.Action{
			{
				Name: "plugin-exports", Title: "Configure the plugin to mount tokens and the CA", On: steps.Remote,
				Doer: pluginConfigFile{},
			},
			{
				Name: "plugin-closed", Title: "Close the plugin's data directory to other users", On: steps.Remote, When: sharedFS,
				Doer: action.CloseFolder{
					Title: "prevents other users of the compute nodes from reading the tokens in it", Path: dataFolder,
				},
			},
			{
				Name: "plugin-restart", Title: "Restart the plugin", On: steps.Remote,
				When: func(e steps.Env) bool { return e.Answers.Text("plugin.unit") != "" }, Doer: atRun(restartPlugin),
			},
		},
		Checks: pluginChecks(),
	}
}

func learnUnit(ctx context.Context, e steps.Env) (any, error) {
	u, err := findUnit(ctx, e)
	return u.name, err
}

func checkUnit(v string) error {
	if v != "" && (!plainWord.MatchString(v) || strings.ContainsAny(v, "/=") || strings.HasPrefix(v, "-")) {
		return errors.New("must be the name of a systemd unit, such as slurm-plugin.service")
	}
	return nil
}

func learnFromUnit(key string) func(context.Context, steps.Env) (any, error) {
	return func(ctx context.Context, e steps.Env) (any, error) {
		u, err := findUnit(ctx, e)
		if err != nil {
			return nil, err
		}
		v, err := u.variable(ctx, e, key)
		if err == nil && v == "" {
			err = steps.Absent("%s does not set %s", u.name, key)
		}
		return v, err
	}
}

func learnConfigPath(ctx context.Context, e steps.Env) (any, error) {
	u, err := findUnit(ctx, e)
	if err != nil {
		return nil, err
	}
	at, err := u.configPath(ctx, e)
	if err == nil && at == "" {
		return nil, steps.Absent("%s does not set SLURMCONFIGPATH", u.name)
	}
	return at, err
}

func learnSharedFS(ctx context.Context, e steps.Env) (any, error) {
	v, err := learnFromUnit("SHARED_FS")(ctx, e)
	var absent *steps.AbsentError
	if errors.As(err, &absent) {
		if _, none := findUnit(ctx, e); none == nil {
			return "false", nil
		}
	}
	if err != nil {
		return nil, err
	}
	return strconv.FormatBool(v == "true"), nil
}

func learnExports(ctx context.Context, e steps.Env) (any, error) {
	c, err := openPlugin(ctx, e)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, steps.Absent("%s does not exist on the edge node", pluginPath(e))
	}
	if err != nil {
		return nil, err
	}
	if c.bad != nil {
		return nil, steps.Absent("%s is not valid YAML", pluginPath(e))
	}
	if !c.flag("ExportPodData") {
		return nil, steps.Absent(
			"the plugin on the edge node does not mount tokens yet: ExportPodData is not true in %s", pluginPath(e),
		)
	}
	return "true", nil
}

func pluginPath(e steps.Env) string { return e.Answers.Text("plugin.config") }

func onEdge(command string) string { return "run on the edge node: " + command }

// unitOf returns the plugin's unit from the answer plugin.unit, with the default suffix .service. It returns "" if the
// answer is empty.
func unitOf(e steps.Env) string {
	u := e.Answers.Text("plugin.unit")
	if u != "" && path.Ext(u) == "" {
		u += ".service"
	}
	return u
}
