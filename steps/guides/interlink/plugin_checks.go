package interlink

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"carrick/cluster/clean"
	"carrick/cluster/host"
	"carrick/steps"
	"carrick/steps/check"
)

const pluginSource = "interlink-hq/interlink-slurm-plugin: pkg/slurm/prepare.go"

func pluginChecks() []steps.Check {
	on := func(c steps.Check) steps.Check {
		c.On, c.References = steps.Remote, append(c.References, pluginSource)
		return c
	}
	return []steps.Check{
		on(steps.Check{
			Name: "plugin-config", Title: "The plugin's configuration is valid and has no unknown keys",
			Why: "The plugin ignores unknown keys, so a setting with a typo has no effect.",
			Run: pluginConfigReads,
		}),
		on(steps.Check{
			Name: "plugin-exports", Title: "The plugin mounts tokens and the CA", Needs: []string{"plugin-config"},
			FixedBy: "plugin-exports",
			Why: "Without ExportPodData in the plugin's own configuration, jobs get the API's variables but no ServiceAccount " +
				"files. The chart's exportPodData has no effect.",
			References: []string{"interlink-hq/interLink: docs/docs/cookbook/1-edge.mdx"}, Run: pluginExports,
		}),
		on(steps.Check{
			Name: "plugin-version", Title: "The plugin is 0.3.9 or newer",
			Why: "Earlier versions do not support projected volumes.", Run: pluginVersion,
		}),
		on(steps.Check{
			Name: "plugin-log", Title: "The plugin finds the projected volumes of its pods", When: withUnit,
			Why: "The plugin does not mount volumes that it cannot find, and starts the job without them.", Run: pluginLog,
		}),
		on(steps.Check{
			Name: "plugin-started", Title: "The plugin runs with its current configuration",
			Needs: []string{"plugin-config"}, FixedBy: "plugin-restart", When: withUnit,
			Why: "The plugin reads its configuration only at start.", Run: pluginStarted,
		}),
		on(steps.Check{
			Name: "plugin-tokens", Title: "Tokens are kept out of job scripts", Needs: []string{"plugin-config"},
			Why: "Without SHARED_FS=true each token is in the sbatch script, which Slurm keeps in its database. Slurm " +
				"operators can read it.", Run: pluginTokens,
		}),
		on(steps.Check{
			Name: "plugin-data-shared", Title: "Compute nodes share the plugin's data directory",
			Needs: []string{"plugin-config"}, When: sharedFS,
			Why: "With SHARED_FS=true the job mounts the files from the same path on its compute node.", Run: pluginDataShared,
		}),
		on(steps.Check{
			Name: "plugin-data-closed", Title: "Other users cannot read the plugin's data directory",
			Needs: []string{"plugin-config"}, When: sharedFS, FixedBy: "plugin-closed",
			Why: "The token file has mode 0644, so only the directory protects it. The token is valid for 100 years or while " +
				"its pod exists.", Run: pluginDataClosed,
		}),
	}
}

func withUnit(e steps.Env) bool { return e.Answers.Text("plugin.unit") != "" }
func sharedFS(e steps.Env) bool { return e.Answers.Bool("plugin.shared-fs") }

// readable returns the plugin's configuration, or the check's result if the configuration cannot be read.
func readable(ctx context.Context, e steps.Env) (pluginConfig, *steps.Result) {
	c, err := openPlugin(ctx, e)
	var r steps.Result
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r = steps.Failed(
			pluginPath(e)+" does not exist on the edge node",
			onEdge("ps -ef | grep -i slurm; systemctl cat UNIT | grep SLURMCONFIGPATH")+
				"; set plugin.config to the path in the output",
		)
	case err != nil:
		r = steps.Errored(err)
	case c.bad != nil:
		r = steps.Failed(pluginPath(e)+": "+clean.Text(c.bad.Error()), onEdge("vi "+steps.Quoted(pluginPath(e))))
	default:
		return c, nil
	}
	return c, &r
}

func pluginConfigReads(ctx context.Context, e steps.Env) steps.Result {
	c, no := readable(ctx, e)
	if no != nil {
		return *no
	}
	u, err := unitNow(ctx, e)
	if err != nil && !steps.IsAbsent(err) {
		return steps.Errored(err)
	}
	if err == nil && withUnit(e) {
		at, err := u.configPath(ctx, e)
		if err != nil {
			return steps.Errored(err)
		}
		if path.IsAbs(at) && !strings.ContainsAny(at, "%$") && resolved(e, at) != resolved(e, pluginPath(e)) {
			return steps.Failed(
				fmt.Sprintf("%s makes the plugin read %s, but plugin.config is %s", u.name, at, pluginPath(e)),
				"set plugin.config to "+at+", or: "+onEdge("systemctl edit --full "+u.name),
			)
		}
	}
	if bad := c.unknown(); len(bad) > 0 {
		return steps.Warned(
			pluginPath(e)+" has keys that the plugin ignores: "+strings.Join(bad, ", "),
			onEdge("vi "+steps.Quoted(pluginPath(e))),
		)
	}
	return steps.Passed("%s", pluginPath(e))
}

func pluginExports(ctx context.Context, e steps.Env) steps.Result {
	c, no := readable(ctx, e)
	if no != nil {
		return *no
	}
	if c.flag("ExportPodData") {
		return steps.Passed("ExportPodData is true in %s", pluginPath(e))
	}
	word := clean.Text(c.word("ExportPodData"))
	said := "sets ExportPodData: " + word
	switch {
	case c.value("ExportPodData") == nil:
		said = "does not set ExportPodData, and its default is false"
	case word != "" && !strings.EqualFold(word, "false"):
		said += ", which the plugin reads as false (it accepts true, without quotes)"
	}
	return steps.Failed(pluginPath(e)+" "+said+", so jobs get no /var/run/secrets/kubernetes.io/serviceaccount", "")
}

// tagInUnit matches the version in an image name or a path.
var tagInUnit = regexp.MustCompile(`(?i)(?:slurm|interlink)[a-z0-9_./-]*[:@/_-]v?(\d+\.\d+\.\d+)(-[a-z0-9.]+)?`)

func pluginVersion(ctx context.Context, e steps.Env) steps.Result {
	u, err := unitNow(ctx, e)
	if _, absent := err.(*steps.AbsentError); absent {
		return steps.Skipped(
			"%s. The plugin's version is therefore unknown (releases: "+
				"https://github.com/interlink-hq/interlink-slurm-plugin/releases)",
			err.Error(),
		)
	}
	if err != nil {
		return steps.Errored(err)
	}
	for _, l := range u.lines() {
		run, ok := strings.CutPrefix(l, "ExecStart=")
		if !ok {
			continue
		}
		if m := tagInUnit.FindStringSubmatch(run); m != nil {
			if version.MustParseGeneric(m[1]).LessThan(version.MustParseGeneric("0.3.9")) {
				return steps.Failed(
					"the unit "+u.name+" starts version "+m[1]+m[2],
					"on the edge node, install 0.3.9 or newer, then: systemctl restart "+u.name,
				)
			}
			return steps.Passed("the plugin's version is %s according to unit %s", m[1]+m[2], u.name)
		}
	}
	return steps.Skipped(
		"unit %s does not contain the plugin's version; check plugin-log shows whether the plugin supports projected volumes",
		u.name,
	)
}

// resolved returns the path at with all symlinks resolved. If carrick cannot resolve the symlinks safely, resolved
// returns the cleaned path.
func resolved(e steps.Env, at string) string {
	if leads, err := e.Host.RootsAlone(at); err == nil {
		return leads
	}
	return path.Clean(at)
}

// unitNow returns the unit in the answer plugin.unit. If the answer is empty, unitNow searches for the unit that starts
// the plugin.
func unitNow(ctx context.Context, e steps.Env) (unit, error) {
	name := unitOf(e)
	if name == "" {
		return findUnit(ctx, e)
	}
	at, masked, err := check.UnitFile(ctx, e.Host, name)
	switch {
	case err != nil:
		return unit{}, err
	case masked:
		return unit{}, steps.Absent("unit %s is masked, so systemd never starts it: %s", name, check.Unmask(at, name))
	case at == "":
		return unit{}, steps.Absent("unit %s does not exist on the edge node", name)
	}
	b, err := e.Host.Read(ctx, at)
	if err != nil {
		return unit{}, err
	}
	return merged(ctx, e, unit{name, string(b)})
}

// cannotRun reports whether err means that carrick cannot run command on the edge node. If so, it also returns the
// skipped result.
func cannotRun(err error, command string) (steps.Result, bool) {
	if errors.Is(err, host.ErrFolder) {
		return steps.Skipped(
			"a local directory stands for the edge node, and carrick runs no commands in it; run on the edge node: %s", command,
		), true
	}
	if errors.Is(err, exec.ErrNotFound) {
		return steps.Skipped("the edge node has no %s", strings.Fields(command)[0]), true
	}
	return steps.Result{}, false
}

func pluginLog(ctx context.Context, e steps.Env) steps.Result {
	said, from, r := readPluginLog(ctx, e)
	if r != nil {
		return *r
	}
	if n := strings.Count(said, "projected volumes not found"); n > 0 {
		return steps.Failed(fmt.Sprintf("%s reports missing projected volumes (%d lines)", from, n),
			onEdge("grep -B3 'projected volumes not found'")+
				" (in the log); check that the virtual kubelet is 0.4.0 or newer, and that DisableProjectedVolumes is false")
	}
	if strings.TrimSpace(said) == "" || strings.Contains(said, "-- No entries --") {
		return steps.Skipped("%s is empty", from)
	}
	return steps.Passed("%s reports no missing projected volumes", from)
}

// readPluginLog returns the plugin's log and where it comes from: the file in the unit's StandardOutput, or else the
// journal.
func readPluginLog(ctx context.Context, e steps.Env) (said, from string, no *steps.Result) {
	u, err := unitNow(ctx, e)
	if err == nil {
		for _, l := range u.lines() {
			at, ok := strings.CutPrefix(l, "StandardOutput=append:")
			if !ok {
				continue
			}
			b, err := e.Host.Read(ctx, at)
			if errors.Is(err, fs.ErrNotExist) {
				return "", at, nil
			}
			if err != nil {
				r := steps.Errored(err)
				return "", at, &r
			}
			return string(b), at, nil
		}
	}
	args := []string{"--no-pager", "--lines=2000", "--unit=" + unitOf(e)}
	said, err = check.CommandOutput(ctx, e.Host, 5*time.Second, "journalctl", args...)
	if r, ok := cannotRun(err, "journalctl "+strings.Join(args, " ")); ok {
		return "", "", &r
	}
	if err != nil {
		r := steps.Errored(err)
		return "", "", &r
	}
	return said, "the journal of " + unitOf(e) + " (2000 lines)", nil
}

func pluginStarted(ctx context.Context, e steps.Env) steps.Result {
	if at, masked, err := check.UnitFile(ctx, e.Host, unitOf(e)); err != nil {
		return steps.Errored(err)
	} else if masked {
		return steps.Failed(unitOf(e)+" is masked, so systemd does not restart it", onEdge(check.Unmask(at, unitOf(e))))
	}
	ok, since, err := started(ctx, e)
	if r, no := cannotRun(err, "systemctl restart "+unitOf(e)); no {
		return r
	}
	switch {
	case err != nil:
		return steps.Errored(err)
	case since.IsZero():
		return steps.Failed(unitOf(e)+" is not running", onEdge("systemctl status "+unitOf(e)))
	case !ok:
		return steps.Failed(
			fmt.Sprintf(
				"%s has been running since %s, but %s was written later", unitOf(e), since.UTC().Format(time.DateTime),
				pluginPath(e),
			),
			"",
		)
	}
	return steps.Passed("%s has been running since %s", unitOf(e), since.UTC().Format(time.DateTime))
}

func pluginTokens(ctx context.Context, e steps.Env) steps.Result {
	answered := e.Answers.Bool("plugin.shared-fs")
	u, err := unitNow(ctx, e)
	_, absent := err.(*steps.AbsentError)
	if err != nil && !absent {
		return steps.Errored(err)
	}
	from := "according to plugin.shared-fs"
	if err == nil {
		v, err := u.variable(ctx, e, "SHARED_FS")
		if err != nil {
			return steps.Errored(err)
		}
		if (v == "true") != answered {
			return steps.Failed(
				fmt.Sprintf("plugin.shared-fs is %t, but SHARED_FS of unit %s is %q", answered, u.name, v),
				"change plugin.shared-fs, or: "+onEdge("systemctl edit "+u.name+"    # Environment=SHARED_FS=true"),
			)
		}
		from = "according to unit " + u.name
	}
	if !answered {
		return steps.Warned(
			"SHARED_FS is not true, "+from+", so each job's token is in its job script",
			"on the edge node, set Environment=SHARED_FS=true where the plugin starts"+
				", if compute nodes share its DataRootFolder; otherwise restrict who can read job scripts (scontrol show "+
				"job, slurmdbd)",
		)
	}
	return steps.Passed("SHARED_FS=true, %s", from)
}
