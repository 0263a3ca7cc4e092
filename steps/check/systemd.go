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

	"carrick/cluster/host"
	"carrick/cluster/tracked"
	"carrick/steps"
)

// unitFolders lists the directories in which systemd looks up units and drop-ins, highest precedence first (man
// systemd.unit).
var unitFolders = []string{
	"/etc/systemd/system.control", "/run/systemd/system.control", "/run/systemd/transient", "/run/systemd/generator.early",
	"/etc/systemd/system", "/etc/systemd/system.attached", "/run/systemd/system", "/run/systemd/system.attached",
	"/run/systemd/generator", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system",
	"/run/systemd/generator.late",
}

// dropInFolders returns the names of a unit's drop-in directories, highest precedence first. own lists the directories
// of the unit, of its template, and of each prefix that ends in a dash. ofType is the directory of the unit's type.
// This directory always has lower precedence than those in own (systemd: src/shared/dropin.c,
// unit_file_find_dropin_paths).
func dropInFolders(unit string) (own []string, ofType string) {
	ext := path.Ext(unit)
	stem := strings.TrimSuffix(unit, ext)
	prefix, instance, instanced := strings.Cut(stem, "@")
	suffixes := []string{ext}
	if instanced {
		suffixes = []string{"@" + instance + ext}
		if instance != "" {
			suffixes = append(suffixes, "@"+ext)
		}
	}
	for _, suffix := range suffixes {
		for p := prefix; p != ""; {
			own = append(own, p+suffix+".d")
			p = strings.TrimRight(p, "-")
			p = p[:strings.LastIndexByte(p, '-')+1]
		}
	}
	return own, strings.TrimPrefix(ext, ".") + ".d"
}

// dropInPaths returns the existing drop-in directories of a unit, highest precedence first.
func dropInPaths(ctx context.Context, h *host.Host, unit string) ([]string, error) {
	own, ofType := dropInFolders(unit)
	var out, weak []string
	for _, folder := range unitFolders {
		there, err := h.List(ctx, folder)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, name := range own {
			if slices.Contains(there, name) {
				out = append(out, path.Join(folder, name))
			}
		}
		if slices.Contains(there, ofType) {
			weak = append(weak, path.Join(folder, ofType))
		}
	}
	return append(out, weak...), nil
}

// DropIns returns the paths of a systemd unit's drop-ins in the order in which systemd reads them. The order is by file
// name, regardless of the directory. A file replaces files of the same name in directories of lower precedence. A
// symlink to /dev/null masks such files.
func DropIns(ctx context.Context, h *host.Host, unit string) ([]string, error) {
	folders, err := dropInPaths(ctx, h, unit)
	if err != nil {
		return nil, err
	}
	found := map[string]string{} // file name to path
	for _, at := range folders {
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

// UnitFile returns the file of a systemd unit that has the highest precedence, or "" if there is none. If that file is
// empty or a symlink to /dev/null, the unit is masked.
func UnitFile(ctx context.Context, h *host.Host, unit string) (at string, masked bool, err error) {
	for _, folder := range unitFolders {
		at := path.Join(folder, unit)
		leads, err := h.Readlink(ctx, at)
		if err != nil || leads == "/dev/null" {
			return at, err == nil, err
		}
		info, err := h.Stat(ctx, at)
		if err == nil {
			return at, info.Size == 0, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", false, err
		}
	}
	return "", false, nil
}

// Unmask returns the command that removes the file that masks a unit. at is the path of that file. systemctl unmask
// removes such files from only two of the directories.
func Unmask(at, unit string) string {
	if slices.Contains([]string{"/etc/systemd/system", "/run/systemd/system"}, path.Dir(at)) {
		return "systemctl unmask " + unit
	}
	return "rm " + steps.Quoted(at) + " && systemctl daemon-reload"
}

// UnitLines returns the effective lines of a unit file. It drops comments and section headers and joins continued
// lines.
func UnitLines(text string) []string {
	var out []string
	for _, l := range strings.Split(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "#") && !strings.HasPrefix(l, ";") &&
			!strings.HasPrefix(l, "[") {
			out = append(out, l)
		}
	}
	return out
}

// CommandOutput returns the output of a command on a host. The output is cached for age. CommandOutput returns the same
// errors as Host.Run.
func CommandOutput(ctx context.Context, h *host.Host, age time.Duration, name string, args ...string) (string, error) {
	key := "run/" + h.Root + "/" + name + " " + strings.Join(args, " ")
	return tracked.Look(ctx, key, age, func(ctx context.Context) (string, error) {
		out, _, err := h.Run(ctx, name, args...)
		return out, err
	})
}

// ActiveSince returns when a systemd unit was started. It returns zero if the unit is not running.
func ActiveSince(ctx context.Context, h *host.Host, unit string) (time.Time, error) {
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
		return at, fmt.Errorf("systemctl reports that %s runs since %q, which is not a time", unit, said)
	}
	return at, nil
}
