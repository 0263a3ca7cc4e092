package ondemand

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"carrick/cluster/host"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

// portalCommands returns the actions that run on the web node after the files are written.
func portalCommands() []steps.Action {
	out := []steps.Action{{
		Name: "portal-update", Title: "Regenerate Apache's configuration", On: steps.Local,
		Needs: []string{"pre-hook-set"},
		Doer: action.Command{
			Title: "regenerates Apache's configuration from " + portalFile, Run: []string{updatePortal},
			Stays: "run this command again after the files are restored, and restart the web server. Until then, Apache calls " +
				"a hook that does not exist, and the site's own hook does not run",
			Done: func(ctx context.Context, e steps.Env) (bool, error) {
				r := portalApplied(ctx, e)
				return r.Status == steps.Pass, r.Err
			},
		},
	}}
	for _, unit := range []string{"httpd", "apache2"} {
		out = append(out, steps.Action{
			Name: "restart-" + unit, Title: "Restart Apache", On: steps.Local, Needs: []string{"pre-hook-set"},
			When: func(e steps.Env) bool { is, err := e.Own.Text("web-server"); return err == nil && is == unit },
			Doer: action.Command{
				Title: "makes Apache read its configuration; users' own web servers keep running",
				Run:   []string{"systemctl", "restart", unit}, Done: func(ctx context.Context, e steps.Env) (bool, error) {
					r := portalRuns(ctx, e)
					return r.Status == steps.Pass, r.Err
				},
			},
		})
	}
	return append(out, steps.Action{
		Name: "selinux-boolean", Title: "Enable the SELinux boolean ondemand_use_kubernetes", On: steps.Local,
		When: func(e steps.Env) bool { mode, err := e.Own.Text("selinux"); return err == nil && mode == enforces },
		Doer: action.Command{
			Title: "makes SELinux allow Open OnDemand to use Kubernetes", Run: []string{"setsebool", "-P", selinuxBoolean, "on"},
			UndoRun: []string{"setsebool", "-P", selinuxBoolean, "off"}, Within: 3 * time.Minute,
			Done: func(ctx context.Context, e steps.Env) (bool, error) {
				out, _, err := e.Host.Run(ctx, "getsebool", selinuxBoolean)
				return strings.HasSuffix(strings.TrimSpace(out), "on"), err
			},
		},
	})
}

func portalFacts() []steps.Fact {
	return []steps.Fact{
		{
			Name: "web-server", Title: "the systemd unit of the portal's web server", On: steps.Local,
			Learn: func(ctx context.Context, e steps.Env) (any, error) {
				unit, _, err := apache(ctx, e)
				return unit, err
			},
		},
		{Name: "selinux", Title: "the SELinux mode of the web node", On: steps.Local, Learn: selinuxMode},
	}
}

// Values of the fact selinux.
const (
	enforces = "enforces"
	permits  = "permits"
	noLinux  = "none"
)

func selinuxMode(ctx context.Context, e steps.Env) (any, error) {
	if e.Host.IsFolder() {
		return nil, steps.Absent(
			"a directory represents the web node, so the SELinux mode is unknown. Run on the web node: getenforce",
		)
	}
	b, err := e.Host.Read(ctx, "/sys/fs/selinux/enforce")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return noLinux, nil
	case err != nil:
		return nil, err
	case strings.TrimSpace(string(b)) == "1":
		return enforces, nil
	}
	return permits, nil
}

// portalRuns verifies that Apache was started after its configuration was written.
func portalRuns(ctx context.Context, e steps.Env) steps.Result {
	unit, file, err := apache(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	restart := onWebNode("systemctl restart " + unit)
	if file == "" {
		return steps.Skipped("update_ood_portal has not written Apache's configuration yet")
	}
	info, err := e.Host.Stat(ctx, file)
	if err != nil {
		return steps.Errored(err)
	}
	since, err := check.ActiveSince(ctx, e.Host, unit)
	if errors.Is(err, host.ErrFolder) {
		r, _ := inFolder(err, "systemctl restart "+unit)
		return r
	}
	switch {
	case err != nil:
		return steps.Errored(err)
	case since.IsZero():
		return steps.Failed(unit+" is not running", onWebNode("systemctl status "+unit))
	case since.Before(info.ModTime.Truncate(time.Second)):
		return steps.Failed(
			fmt.Sprintf("%s has been running since %s, but %s is newer", unit, since.Format(time.DateTime), file), restart,
		)
	}
	return steps.Passed("%s has been running since %s", unit, since.Format(time.DateTime))
}
