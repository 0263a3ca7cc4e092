package ondemand

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/steps"
)

// tables are root's crontabs outside of scriptFolders.
var tables = []string{"/etc/crontab", "/var/spool/cron/root", "/var/spool/cron/crontabs/root"}

// scriptFolders are the folders from which cron runs all files.
var scriptFolders = []string{"/etc/cron.d", "/etc/cron.hourly", "/etc/cron.daily"}

// otherRenewal is a renewal of root's token that carrick did not create.
type otherRenewal struct {
	table     string // the cron file that runs it
	script    string // the script that the file runs; "": the command is in the file itself
	published bool   // as on the published page: writes the token into a kubeconfig
}

func (r otherRenewal) String() string {
	if r.script == "" {
		return r.table
	}
	return r.table + " (" + clean.Text(r.script) + ")"
}

// otherRenewals looks for renewals in cron's files and in the scripts that they run. looked is the number of cron files
// that were read.
func otherRenewals(ctx context.Context, e steps.Env) (found []otherRenewal, looked int, err error) {
	files := tables
	for _, folder := range scriptFolders {
		names, err := e.Host.List(ctx, folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, 0, err
		}
		for _, name := range names {
			files = append(files[:len(files):len(files)], folder+"/"+name)
		}
	}
	for _, file := range files {
		data, err := e.Host.Read(ctx, file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, fs.ErrPermission):
			return nil, 0, err
		case err != nil:
			continue // not a file: cron ignores it, too
		}
		looked++
		if r, ok := renewalIn(ctx, e, string(data)); ok {
			r.table = file
			found = append(found, r)
		}
	}
	return found, looked, nil
}

// renewalIn looks for a renewal in a cron file, or in a script that the file runs.
func renewalIn(ctx context.Context, e steps.Env, table string) (otherRenewal, bool) {
	if renews, published := isRenewal(table); renews {
		return otherRenewal{published: published}, true
	}
	for line := range strings.SplitSeq(table, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for _, word := range strings.Fields(line) {
			word = strings.Trim(word, `"';`)
			if !strings.HasPrefix(word, "/") || word == renewScript || len(word) > 4096 {
				continue
			}
			script, err := e.Host.Read(ctx, word)
			if err != nil {
				continue // not a readable script
			}
			if renews, published := isRenewal(string(script)); renews {
				return otherRenewal{script: word, published: published}, true
			}
		}
	}
	return otherRenewal{}, false
}

// isRenewal reports whether a script requests a token of the ServiceAccount, and whether it also writes the token into
// a kubeconfig, as on the published page.
func isRenewal(script string) (renews, published bool) {
	for line := range strings.SplitSeq(script, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		renews = renews || strings.Contains(line, "create token "+account)
		published = published || strings.Contains(line, "config set-credentials")
	}
	return renews, renews && published
}

func publishedRenewal(ctx context.Context, e steps.Env) steps.Result {
	others, looked, err := otherRenewals(ctx, e)
	if errors.Is(err, fs.ErrPermission) {
		return steps.Skipped("%s: run carrick as root", failure.Explain(err))
	}
	if err != nil {
		return steps.Errored(err)
	}
	for _, r := range others {
		if r.published {
			return steps.Warned(r.String()+" renews the token as on the published page and writes it to a kubeconfig",
				"remove it from "+steps.Quoted(r.table)+" once carrick's renewal runs; then remove the token that it left: "+
					onWebNode("kubectl --kubeconfig="+homeKubeconfig+" config unset users."+rootUser+".token"))
		}
	}
	return steps.Passed("cron's %d files contain no such renewal", looked)
}

// renewedElsewhere returns the result if carrick's script does not exist. A site can have its own renewal.
func renewedElsewhere(ctx context.Context, e steps.Env) steps.Result {
	others, _, err := otherRenewals(ctx, e)
	if errors.Is(err, fs.ErrPermission) {
		return steps.Skipped(
			"%s does not exist, and another renewal cannot be ruled out: %s; run carrick as root", renewScript,
			failure.Explain(err),
		)
	}
	if err != nil {
		return steps.Errored(err)
	}
	for _, r := range others {
		if !r.published {
			return steps.Passed("the site's own renewal: %s", r)
		}
	}
	if len(others) > 0 {
		return steps.Failed(
			renewScript+" does not exist, and "+others[0].String()+" renews the token as on the published page, which does not "+
				"write it to "+rootToken,
			"",
		)
	}
	return steps.Undone(renewScript + " does not exist, and no cron table contains a renewal")
}
