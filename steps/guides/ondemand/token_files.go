package ondemand

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"time"

	"carrick/cluster/bearer"
	"carrick/cluster/masked"
	"carrick/steps"
	"carrick/steps/action"
)

func withTimer(e steps.Env) bool {
	return rotating(e) && e.Answers.Text("token.renewal") == "timer"
}

func withCron(e steps.Env) bool { return rotating(e) && e.Answers.Text("token.renewal") == "cron" }

func renewalOf(e steps.Env) renewal {
	return renewal{
		Kubectl: kubectlPath(e), Kubeconfig: rootKubeconfig, Token: rootToken, Hours: e.Answers.Int("token.hours"),
	}
}

func tokenFiles() []steps.Action {
	text := func(of func(renewal) (string, error)) func(context.Context, steps.Env) (masked.Value, error) {
		return func(_ context.Context, e steps.Env) (masked.Value, error) {
			s, err := of(renewalOf(e))
			return masked.New(s), err
		}
	}
	unit := func(of func(renewal) string) func(context.Context, steps.Env) (masked.Value, error) {
		return text(func(r renewal) (string, error) { return of(r), r.valid() })
	}
	return []steps.Action{
		{
			Name: "token-file", Title: "Write root's token", On: steps.Local,
			Doer: action.File{Path: rootToken, Mode: 0o600, Secret: true, Content: mountedToken, Ours: isRootsToken},
		},
		{
			Name: "renew-script", Title: "Write the renewal script", On: steps.Local, When: rotating,
			Doer: action.File{Path: renewScript, Mode: 0o700, Content: text(renewal.script)},
		},
		{
			Name: "renew-service", Title: "Write the service that runs the script", On: steps.Local, When: withTimer,
			Doer: action.File{Path: renewService, Mode: 0o644, Content: unit(renewal.service)},
		},
		{
			Name: "renew-timer", Title: "Write the timer that runs the service", On: steps.Local, When: withTimer,
			Doer: action.File{Path: renewTimer, Mode: 0o644, Content: unit(renewal.timer)},
		},
		{
			Name: "reload-units", Title: "Reload systemd's units", On: steps.Local, When: withTimer,
			Doer: action.Command{
				Title: "loads the timer into systemd", Run: []string{"systemctl", "daemon-reload"}, Done: unitsRead,
			},
		},
		{Name: "enable-timer", Title: "Start the timer", On: steps.Local, When: withTimer, Doer: action.Command{
			Title:   "starts the timer that renews root's token",
			Run:     []string{"systemctl", "enable", "--now", renewName + ".timer"},
			UndoRun: []string{"systemctl", "disable", "--now", renewName + ".timer"}, Done: timerRuns,
		}},
		{
			Name: "renew-cron", Title: "Add the cron job that runs the script", On: steps.Local, When: withCron,
			Doer: action.File{Path: renewCron, Mode: 0o644, Content: unit(renewal.cron)},
		},
	}
}

// unitsRead reports whether systemd has loaded the current unit files.
func unitsRead(ctx context.Context, e steps.Env) (bool, error) {
	for _, unit := range []string{renewName + ".service", renewName + ".timer"} {
		out, _, err := e.Host.Run(ctx, "systemctl", "show", "--property=NeedDaemonReload", unit)
		if err != nil || strings.TrimSpace(out) != "NeedDaemonReload=no" {
			return false, err
		}
	}
	return true, nil
}

// timerRuns reports whether the timer is enabled and active. If not, systemctl exits with a nonzero status.
func timerRuns(ctx context.Context, e steps.Env) (bool, error) {
	for _, ask := range []string{"is-enabled", "is-active"} {
		_, _, err := e.Host.Run(ctx, "systemctl", ask, renewName+".timer")
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// isRootsToken reports whether have is a token of the ServiceAccount, expired or not. carrick is allowed to overwrite
// such a file, because the renewal also overwrites it.
func isRootsToken(have []byte) bool {
	t, err := bearer.Parse(masked.New(trimmed(have)))
	return err == nil && t.Subject == accountUser
}

// mountedToken returns the existing token file if fits accepts it, or else the web node's token from the cluster's
// Secret.
func mountedToken(ctx context.Context, e steps.Env) (masked.Value, error) {
	have, err := e.Host.Read(ctx, rootToken)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return masked.Value{}, err
	}
	fresh, missing := e.Peer.Masked("token")
	if err == nil && fits(have, fresh, rotating(e), time.Now()) {
		return masked.New(string(have)), nil
	}
	return fresh, missing
}

// fits reports whether carrick keeps the existing token file. Its token must belong to the current ServiceAccount, not
// to a deleted ServiceAccount of the same name. If renewed is true, the token must remain valid for enoughLife.
// Otherwise the token must never expire.
func fits(have []byte, fresh masked.Value, renewed bool, now time.Time) bool {
	t, err := bearer.Parse(masked.New(trimmed(have)))
	if err != nil || t.Subject != accountUser {
		return false
	}
	if f, err := bearer.Parse(fresh); err == nil && f.AccountUID != "" && t.AccountUID != "" &&
		f.AccountUID != t.AccountUID {
		return false
	}
	if !renewed {
		return t.Expires.IsZero()
	}
	return t.Expires.IsZero() || !t.Expired(now.Add(enoughLife(t)))
}

// enoughLife returns the minimum remaining lifetime of a renewed token.
func enoughLife(t bearer.Token) time.Duration {
	if made := t.Expires.Sub(t.IssuedAt); !t.IssuedAt.IsZero() && made < 4*time.Hour {
		return made / 2
	}
	return 2 * time.Hour
}

// rootsToken returns root's token and the path of its file: the file that the renewal writes, or else the file that
// root's kubeconfig uses.
func rootsToken(ctx context.Context, e steps.Env) (token masked.Value, at string, err error) {
	data, err := e.Host.Read(ctx, rootToken)
	if err == nil {
		return masked.New(trimmed(data)), rootToken, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return masked.Value{}, "", err
	}
	in, used, err := readRootKubeconfig(ctx, e)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return masked.Value{}, "", steps.Absent("neither %s nor %s exists", rootToken, used.Path)
	case err != nil:
		return masked.Value{}, "", err
	case in.TokenFile != "":
		at = kubeconfigPath(used.Path, in.TokenFile)
		data, err := e.Host.Read(ctx, at)
		if errors.Is(err, fs.ErrNotExist) {
			return masked.Value{}, at, steps.Absent("%s reads the token from %s, which does not exist", used.Path, at)
		}
		return masked.New(trimmed(data)), at, err
	case in.Token.IsZero():
		return masked.Value{}, "", steps.Absent("%s contains no token", used.Path)
	}
	return in.Token, used.Path, nil
}

// manualToken returns the commands with which an admin creates root's token without carrick.
func manualToken(e steps.Env) string {
	return fmt.Sprintf(
		"%s -n %s create token %s --duration %dh > token    # by an admin; then as root on the web node: install -m "+
			"0600 token %s",
		e.PeerKubectl(), namespace, account, max(1, e.Answers.Int("token.hours")), rootToken,
	)
}

func newTokenFix(e steps.Env) string { return e.ApplyStep("token") + "\n# or " + manualToken(e) }
