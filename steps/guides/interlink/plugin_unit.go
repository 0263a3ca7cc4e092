package interlink

import (
	"context"
	"errors"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

// unit is the name and the text of a systemd unit.
type unit struct{ name, text string }

// findUnit returns the unit that starts the Slurm plugin. It prefers a unit that sets SLURMCONFIGPATH, because the
// executables of other plugins can have the same path.
func findUnit(ctx context.Context, e steps.Env) (unit, error) {
	names, err := e.Host.List(ctx, unitFolder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unit{}, err
	}
	var found []unit
	for _, n := range names {
		if !strings.HasSuffix(n, ".service") {
			continue
		}
		b, err := e.Host.Read(ctx, unitFolder+"/"+n)
		if err != nil {
			continue // a dangling symlink or a directory, so not the plugin's unit
		}
		u, err := merged(ctx, e, unit{n, string(b)})
		if err != nil {
			u = unit{n, string(b)} // ignores unreadable drop-ins, which usually belong to another service
		}
		if u.sets("SLURMCONFIGPATH") {
			return u, nil
		}
		if u.startsPlugin() {
			found = append(found, u)
		}
	}
	if len(found) > 0 {
		return found[0], nil
	}
	return unit{}, steps.Absent("no unit in %s starts the Slurm plugin", unitFolder)
}

// merged returns u with its drop-ins appended, as systemctl cat shows it.
func merged(ctx context.Context, e steps.Env, u unit) (unit, error) {
	files, err := check.DropIns(ctx, e.Host, u.name)
	if err != nil {
		return u, err
	}
	for _, at := range files {
		text, err := e.Host.Read(ctx, at)
		if err != nil {
			return u, err
		}
		u.text += "\n" + string(text)
	}
	return u, nil
}

func (u unit) sets(key string) bool {
	return slices.ContainsFunc(u.lines(), func(l string) bool { return strings.Contains(l, key+"=") })
}

// startsPlugin reports whether the unit starts the Slurm plugin. The unit of the Docker plugin has the same ExecStart,
// but sets INTERLINKCONFIGPATH (interlink-hq/interLink: docs/docs/guides/08-systemd-deployment.mdx, f6321757).
func (u unit) startsPlugin() bool {
	switch {
	case u.sets("SLURMCONFIGPATH"):
		return true
	case u.sets("INTERLINKCONFIGPATH"):
		return false
	}
	for _, l := range u.lines() {
		if run, ok := strings.CutPrefix(l, "ExecStart="); ok && strings.Contains(run, "interlink") &&
			(strings.Contains(run, "slurm") || strings.HasSuffix(strings.Fields(run + " x")[0], "/plugin")) {
			return true
		}
	}
	return false
}

// lines returns the effective lines of the unit. As in systemd, an empty assignment removes the earlier assignments of
// the same key.
func (u unit) lines() (out []string) {
	for _, l := range check.UnitLines(u.text) {
		if key, value, is := strings.Cut(l, "="); is && strings.TrimSpace(value) == "" {
			out = slices.DeleteFunc(out, func(before string) bool { return strings.HasPrefix(before, key+"=") })
			continue
		}
		out = append(out, l)
	}
	return out
}

// configFlag matches the plugin's flag for its configuration file. The flag has precedence over SLURMCONFIGPATH.
var configFlag = regexp.MustCompile(`\s--?SlurmConfigpath[=\s]["']?([^\s"']+)`)

// configPath returns the configuration file that the unit sets for the plugin, or "" if the unit sets none.
func (u unit) configPath(ctx context.Context, e steps.Env) (string, error) {
	at := ""
	for _, l := range u.lines() {
		run, is := strings.CutPrefix(l, "ExecStart=")
		if m := configFlag.FindStringSubmatch(run); is && m != nil {
			at = clean.Text(m[1])
		}
	}
	if at != "" {
		return at, nil
	}
	return u.variable(ctx, e, "SLURMCONFIGPATH")
}

// variable returns the value of environment variable key in the unit or its EnvironmentFile, or "" if it is not set.
func (u unit) variable(ctx context.Context, e steps.Env, key string) (string, error) {
	set := regexp.MustCompile(`(?:^|[\s"'=])` + regexp.QuoteMeta(key) + `=["']?([^\s"']+)`)
	out := ""
	for _, l := range u.lines() {
		if file, ok := strings.CutPrefix(l, "EnvironmentFile="); ok {
			b, err := e.Host.Read(ctx, strings.TrimPrefix(file, "-"))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return "", err
			}
			for _, in := range (unit{text: string(b)}).lines() {
				if m := set.FindStringSubmatch(in); m != nil {
					out = m[1]
				}
			}
			continue
		}
		if m := set.FindStringSubmatch(l); m != nil {
			out = m[1]
		}
	}
	return clean.Text(out), nil
}

// started reports whether the plugin was started after its configuration was written.
func started(ctx context.Context, e steps.Env) (bool, time.Time, error) {
	since, err := check.ActiveSince(ctx, e.Host, unitOf(e))
	if err != nil {
		return false, since, err
	}
	info, err := e.Host.Stat(ctx, pluginPath(e))
	if errors.Is(err, fs.ErrNotExist) {
		return true, since, nil
	}
	return !since.IsZero() && !since.Before(info.ModTime.Truncate(time.Second)), since, err
}
