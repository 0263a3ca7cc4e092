package ondemand

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"carrick/cluster"
	"carrick/steps"
)

// tables are where cron's tables of root stand, besides the folder.
var tables = []string{"/etc/crontab", "/var/spool/cron/root", "/var/spool/cron/crontabs/root"}

// scriptFolders run all that stands in them.
var scriptFolders = []string{"/etc/cron.d", "/etc/cron.hourly", "/etc/cron.daily"}

// publishedRenewal looks for the published page's renewal in cron's tables and in
// the scripts that they name.
func publishedRenewal(ctx context.Context, e steps.Env) steps.Result {
	files := tables
	for _, folder := range scriptFolders {
		names, err := e.Host.List(ctx, folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return steps.Unseen(err)
		}
		for _, name := range names {
			files = append(files[:len(files):len(files)], folder+"/"+name)
		}
	}
	looked := 0
	for _, file := range files {
		data, err := e.Host.Read(ctx, file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, fs.ErrPermission):
			return steps.Skipped("%s can't be read: run carrick as root", file)
		case err != nil:
			continue // a folder or the like: cron reads none either
		}
		looked++
		if found := publishedIn(ctx, e, string(data)); found != "" {
			return steps.Warned(fmt.Sprintf("%s runs the published page's renewal%s, which writes the token into a kubeconfig", file, found),
				"take it out of "+steps.Quoted(file)+" once carrick's renewal runs, and the token that it left: "+onWebNode("kubectl --kubeconfig="+homeKubeconfig+" config unset users."+rootUser+".token"))
		}
	}
	return steps.Passed("none in cron's %d files", looked)
}

// publishedIn tells where a table holds such a renewal: " itself", or in a script
// that it names; "": nowhere.
func publishedIn(ctx context.Context, e steps.Env, table string) string {
	if isPublished(table) {
		return " itself"
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
			if err == nil && isPublished(string(script)) {
				return " " + cluster.Clean(word)
			}
		}
	}
	return ""
}

// isPublished recognises the page's script: it makes a token and puts it into a
// kubeconfig.
func isPublished(script string) bool {
	create, set := false, false
	for line := range strings.SplitSeq(script, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		create = create || strings.Contains(line, "create token "+account)
		set = set || strings.Contains(line, "config set-credentials")
	}
	return create && set
}
