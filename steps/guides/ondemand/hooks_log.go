package ondemand

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"time"

	"carrick/cluster/clean"
	"carrick/cluster/host"
	"carrick/steps"
	"carrick/steps/check"
)

const (
	stageTag     = "ood_nginx_stage"
	logLines     = "500" // number of latest entries to read
	logTailBytes = "262144"

	// notStarted is part of the log entry for a hook that could not be executed.
	notStarted = "threw exception"
)

// logFiles lists the files that syslog writes on systems without a journal.
var logFiles = []string{"/var/log/messages", "/var/log/syslog"}

// hookLog searches the log for failures after the last change to the hook. Older failures might already be fixed.
func hookLog(ctx context.Context, e steps.Env) steps.Result {
	look := "journalctl -t " + stageTag + " -n " + logLines + " --no-pager | grep -E 'exited with|threw exception'"
	if e.Host.IsFolder() {
		r, _ := inFolder(host.ErrFolder, look)
		return r
	}
	text, from, err := stageLog(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if from == "" {
		return steps.Skipped(
			"neither the journal nor %s can be read. Run on the web node: %s", strings.Join(logFiles, " nor "), look,
		)
	}
	at, err := hookInUse(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	since := changedLast(ctx, e)
	var bad []string
	seen := false
	for _, l := range strings.Split(text, "\n") {
		logged, known := logTime(l, time.Now())
		if !strings.Contains(l, stageTag) || known && logged.Before(since) {
			continue
		}
		seen = true
		if strings.Contains(l, "exited with") || strings.Contains(l, notStarted) {
			bad = append(bad, strings.TrimSpace(l))
		}
	}
	when := since.Format(time.DateTime)
	if len(bad) > 0 {
		last := bad[len(bad)-1]
		fix := "bash -x " + steps.Quoted(at) + " --user USER    # as root, for the user in the log entry"
		if strings.Contains(last, notStarted) {
			fix = "ls -l " + steps.Quoted(at) + " && head -n 1 " + steps.Quoted(at) +
				"    # root must be able to execute this file and the interpreter after #!"
		}
		found := fmt.Sprintf(
			"the hook failed %s according to entries in %s since %s. Last entry: %s", times(len(bad)), from, when,
			clean.Text(last),
		)
		return steps.Failed(found, onWebNode(fix))
	}
	switch hides, err := hidesFailures(ctx, e, at); {
	case err != nil:
		return steps.Errored(err)
	case hides:
		return steps.Skipped(
			"%s contains no failure since %s, but %s continues after %s fails, and Open OnDemand logs only the hook's "+
				"exit status",
			from, when, shownWord(at), bootstrapName,
		)
	case !seen:
		return steps.Passed(
			"%s contains no entry of %s since %s: no hook failed, or no user's web server started", from, stageTag,
			when,
		)
	}
	return steps.Passed("%s contains no hook failure since %s", from, when)
}

// hidesFailures reports whether hook is a shell script that continues after upstream's bootstrap fails.
func hidesFailures(ctx context.Context, e steps.Env, hook string) (bool, error) {
	script, err := e.Host.Read(ctx, hook)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	does, err := readHook(string(script))
	if err != nil && !errors.Is(err, errNoShell) {
		return false, fmt.Errorf("%s: %w", hook, err)
	}
	return does.hides, nil
}

// stageLog returns the latest log entries from nginx_stage and the name of the log. from is "" if no log can be read.
func stageLog(ctx context.Context, e steps.Env) (text, from string, err error) {
	text, err = check.CommandOutput(
		ctx, e.Host, 30*time.Second, "journalctl", "-t", stageTag, "-n", logLines, "-o", "short-iso", "--no-pager",
	)
	if err == nil && strings.Contains(text, stageTag) {
		return text, "the journal", nil
	}
	for _, f := range logFiles {
		there, statErr := fileExists(ctx, e, f)
		if statErr != nil || !there {
			continue
		}
		tail, err := check.CommandOutput(ctx, e.Host, 30*time.Second, "tail", "-c", logTailBytes, f)
		if err != nil {
			return "", "", err
		}
		return tail, f, nil
	}
	if err == nil {
		return text, "the journal", nil
	}
	return "", "", nil
}

// changedLast returns the latest modification time of the hook and of the files that it reads.
func changedLast(ctx context.Context, e steps.Env) time.Time {
	var last time.Time
	files := []string{hookEnv, rootKubeconfig}
	if at, err := hookInUse(ctx, e); err == nil {
		files = append(files, at)
	}
	for _, f := range files {
		if info, err := e.Host.Stat(ctx, f); err == nil && info.ModTime.After(last) {
			last = info.ModTime
		}
	}
	return last
}

var (
	isoTime    = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:?\d\d|Z)`)
	syslogTime = regexp.MustCompile(`^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d`)
)

// logTime parses the timestamp at the start of line. If the timestamp has no year, logTime uses the latest year in
// which the time is not in the future.
func logTime(line string, now time.Time) (time.Time, bool) {
	if m := isoTime.FindString(line); m != "" {
		for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04:05-0700", "2006-01-02T15:04:05.999999-0700"} {
			if t, err := time.Parse(form, m); err == nil {
				return t, true
			}
		}
	}
	if m := syslogTime.FindString(line); m != "" {
		t, err := time.ParseInLocation(time.Stamp, m, now.Location())
		if err != nil {
			return t, false
		}
		t = t.AddDate(now.Year(), 0, 0)
		if t.After(now.AddDate(0, 0, 1)) {
			t = t.AddDate(-1, 0, 0)
		}
		return t, true
	}
	return time.Time{}, false
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
