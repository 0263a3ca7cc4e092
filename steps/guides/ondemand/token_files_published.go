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

// tables are where cron's tables of root stand, besides the folder.
var tables = []string{"/etc/crontab", "/var/spool/cron/root", "/var/spool/cron/crontabs/root"}

// scriptFolders run all that stands in them.
var scriptFolders = []string{"/etc/cron.d", "/etc/cron.hourly", "/etc/cron.daily"}

// otherRenewal is a renewal of root's token that is not carrick's.
type otherRenewal struct {
	table     string // where cron has it from
	script    string // what that runs; "": it is in the table itself
	published bool   // as the published page has it: the token goes into a kubeconfig
}

func (r otherRenewal) String() string {
	if r.script == "" {
		return r.table
	}
	return r.table + " (" + clean.Text(r.script) + ")"
}

// otherRenewals looks for renewals in cron's tables and in the scripts that they
// name. looked is how many tables there are.
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
			continue // a folder or the like: cron reads none either
		}
		looked++
		if r, ok := renewalIn(ctx, e, string(data)); ok {
			r.table = file
			found = append(found, r)
		}
	}
	return found, looked, nil
}

// renewalIn finds a renewal in a table, or in a script that it names.
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
				continue // not a script that is there
			}
			if renews, published := isRenewal(string(script)); renews {
				return otherRenewal{script: word, published: published}, true
			}
		}
	}
	return otherRenewal{}, false
}

// isRenewal reports whether a script requests a token of the ServiceAccount, and whether it writes it to a kubeconfig,
// as the published page's does.
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

// renewedElsewhere is the verdict where carrick's script is not there: a site may
// have a renewal of its own.
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
