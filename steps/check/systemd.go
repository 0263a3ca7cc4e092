package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"carrick/cluster"
)

// unitFolders are where systemd looks for a unit and its drop-ins, the strongest first (man systemd.unit).
var unitFolders = []string{"/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}

// DropIns returns the paths of the drop-ins of a systemd unit in the order in which systemd reads them: by file name, whatever
// their folder is. One in a stronger folder replaces another one of the same file name, and a link to /dev/null hides it.
func DropIns(ctx context.Context, h *cluster.Host, unit string) ([]string, error) {
	found := map[string]string{} // path by file name
	for _, folder := range unitFolders {
		at := path.Join(folder, unit+".d")
		names, err := h.List(ctx, at)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if strings.HasSuffix(name, ".conf") && found[name] == "" {
				found[name] = path.Join(at, name)
			}
		}
	}
	var out []string
	for _, at := range found {
		leads, err := h.Readlink(ctx, at)
		if err != nil {
			return nil, err
		}
		if leads != "/dev/null" {
			out = append(out, at)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return strings.Compare(path.Base(a), path.Base(b)) })
	return out, nil
}

// Masked reports whether a systemd unit is masked: systemctl mask links it to /dev/null.
func Masked(ctx context.Context, h *cluster.Host, unit string) (bool, error) {
	for _, folder := range unitFolders[:2] {
		leads, err := h.Readlink(ctx, path.Join(folder, unit))
		if err != nil || leads == "/dev/null" {
			return err == nil, err
		}
	}
	return false, nil
}

// UnitLines returns the lines of a unit file that say something: no comments, no sections, continued lines joined.
func UnitLines(text string) []string {
	var out []string
	for _, l := range strings.Split(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "#") && !strings.HasPrefix(l, ";") && !strings.HasPrefix(l, "[") {
			out = append(out, l)
		}
	}
	return out
}

// CommandOutput returns what a command on a host prints, for age. Errors are those of Host.Run.
func CommandOutput(ctx context.Context, h *cluster.Host, age time.Duration, name string, args ...string) (string, error) {
	key := "run/" + h.Root + "/" + name + " " + strings.Join(args, " ")
	return cluster.Look(ctx, key, age, func(ctx context.Context) (string, error) {
		out, _, err := h.Run(ctx, name, args...)
		return out, err
	})
}

// ActiveSince returns when a systemd unit was started. It is zero while the unit does not run.
func ActiveSince(ctx context.Context, h *cluster.Host, unit string) (time.Time, error) {
	text, err := CommandOutput(ctx, h, 5*time.Second, "systemctl", "show", "--property=ActiveEnterTimestamp", unit)
	if err != nil {
		return time.Time{}, err
	}
	said := strings.TrimPrefix(strings.TrimSpace(text), "ActiveEnterTimestamp=")
	if said == "" || said == "n/a" {
		return time.Time{}, nil
	}
	at, err := time.ParseInLocation("Mon 2006-01-02 15:04:05 MST", said, time.Local)
	if err != nil {
		return at, fmt.Errorf("systemctl says that %s runs since %q, which is no time", unit, said)
	}
	return at, nil
}
