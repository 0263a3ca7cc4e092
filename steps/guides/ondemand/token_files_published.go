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

// crontabs lists the paths of crontabs that can contain jobs of root.
var crontabs = []string{"/etc/crontab", "/var/spool/cron/root", "/var/spool/cron/crontabs/root"}

// scriptFolders lists the directories whose files cron reads or runs.
var scriptFolders = []string{"/etc/cron.d", "/etc/cron.hourly", "/etc/cron.daily"}

// otherRenewal is a cron job that renews root's token and that carrick did not create.
type otherRenewal struct {
	table     string // path of the crontab, or of the script in scriptFolders
	script    string // path of the script that table runs; "" if table itself contains the command
	published bool   // whether the job writes the token into a kubeconfig, as in the published guide
}

func (r otherRenewal) String() string {
	if r.script == "" {
		return r.table
	}
	return r.table + " (" + clean.Text(r.script) + ")"
}

// otherRenewals searches cron's files and the scripts that they run. looked is the number of cron files read.
func otherRenewals(ctx context.Context, e steps.Env) (found []otherRenewal, looked int, err error) {
	files := crontabs
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
			continue // not a regular file, so cron ignores it
		}
		looked++
		if r, ok := renewalIn(ctx, e, string(data)); ok {
			r.table = file
			found = append(found, r)
		}
	}
	return found, looked, nil
}

// renewalIn searches table, the text of a cron file, and the scripts that it runs. It does not set the field table of
// the result.
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

// isRenewal reports whether script requests a token of the ServiceAccount. published reports whether script also writes
// the token into a kubeconfig, as in the published guide.
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
			return steps.Warned(r.String()+" renews the token as in the published guide and writes the token to a kubeconfig",
				"remove this renewal from "+steps.Quoted(r.table)+
					" once carrick's renewal runs; then remove its token from the kubeconfig: "+
					onWebNode("kubectl --kubeconfig="+homeKubeconfig+" config unset users."+rootUser+".token"))
		}
	}
	return steps.Passed("none of cron's %d files contains a renewal from the published guide", looked)
}

// renewedElsewhere returns the result for a web node without carrick's renewal script. It passes if the site has its
// own renewal.
func renewedElsewhere(ctx context.Context, e steps.Env) steps.Result {
	others, _, err := otherRenewals(ctx, e)
	if errors.Is(err, fs.ErrPermission) {
		return steps.Skipped(
			"%s does not exist, and carrick cannot check for another renewal: %s; run carrick as root", renewScript,
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
			renewScript+" does not exist, and "+others[0].String()+
				" renews the token as in the published guide, which does not "+
				"write the token to "+rootToken,
			"",
		)
	}
	return steps.Undone(renewScript + " does not exist, and no cron table contains a renewal")
}
