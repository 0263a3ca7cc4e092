package ondemand

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"carrick/steps"
)

// upstreamScript is a script of upstream's that the pre-hook names.
type upstreamScript struct {
	path   string
	direct bool // the pre-hook executes the file itself, which requires its execute bit
}

// upstreamScripts returns the files of a base name that a hook names by their absolute path.
func upstreamScripts(does hookReading, name string) []upstreamScript {
	var out []upstreamScript
	for _, w := range strings.Fields(does.words) {
		w = strings.TrimRight(w, ";")
		if path.Base(w) != name || !scriptPath.MatchString(w) ||
			slices.ContainsFunc(out, func(s upstreamScript) bool { return s.path == w }) {
			continue
		}
		out = append(out, upstreamScript{w, slices.Contains(does.programs, w)})
	}
	return out
}

// usedScripts are the names of upstream's scripts that users' logins depend on, with what each is for.
func usedScripts(e steps.Env) map[string]string {
	out := map[string]string{bootstrapName: "users get no namespace"}
	if withOIDC(e) {
		out[path.Base(credsHook)] = "users' tokens are not written to their kubeconfig"
	}
	return out
}

// upstreamBroken says which of upstream's scripts that a hook runs cannot do their work; "": none is known. Where a
// hook names several files of one name, one that works is enough.
func upstreamBroken(ctx context.Context, e steps.Env, does hookReading) (problem, at string, err error) {
	var problems []string
	used := usedScripts(e)
	for _, name := range []string{bootstrapName, path.Base(credsHook)} {
		why, is := used[name]
		if !is {
			continue
		}
		first := ""
		scripts := upstreamScripts(does, name)
		for _, s := range scripts {
			said, err := brokenScript(ctx, e, s.path)
			if err != nil {
				return "", "", err
			}
			if said == "" {
				first = ""
				break
			}
			if first == "" {
				first, at = said+": "+why, s.path
			}
		}
		if first != "" {
			problems = append(problems, first)
		}
	}
	return strings.Join(problems, "; "), at, nil
}

// brokenScript says what certainly keeps a script of upstream's from doing anything; "": nothing. The content differs
// by version, so only a missing file, an empty one and one that exits before it runs anything are faults.
func brokenScript(ctx context.Context, e steps.Env, at string) (string, error) {
	b, err := e.Host.Read(ctx, at)
	if errors.Is(err, fs.ErrNotExist) {
		return at + " does not exist", nil
	}
	if err != nil {
		return "", err
	}
	script := string(b)
	if !slices.ContainsFunc(strings.Split(script, "\n"), func(l string) bool {
		l = strings.TrimSpace(l)
		return l != "" && !strings.HasPrefix(l, "#")
	}) {
		return at + " has no commands", nil
	}
	if !strings.HasPrefix(script, "#!") { // bash runs it all the same
		script = "#!/bin/bash\n" + script
	}
	does, err := readHook(script)
	switch {
	case errors.Is(err, errNoShell):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("%s: %w", at, err)
	case does.exits && !strings.Contains(does.words, "kubectl"):
		return at + " exits before it runs kubectl", nil
	}
	return "", nil
}

// upstreamWorks asserts that upstream's scripts which a hook runs exist and do something.
func upstreamWorks(ctx context.Context, e steps.Env, does hookReading) steps.Result {
	if e.Host.IsFolder() {
		there, err := fileExists(ctx, e, path.Dir(hooksFolder))
		if err != nil {
			return steps.Errored(err)
		}
		if !there { // nothing else of Open OnDemand's package has to be copied there
			return steps.Skipped("%s is not in the folder that represents the web node. Copy it there: scp -rp WEBNODE:%[1]s %s",
				path.Dir(hooksFolder), steps.Quoted(e.Host.Root+path.Dir(path.Dir(hooksFolder))))
		}
	}
	problem, at, err := upstreamBroken(ctx, e, does)
	if err != nil {
		return steps.Errored(err)
	}
	if problem == "" {
		return steps.Passed("")
	}
	fix, err := reinstall(ctx, e, at)
	switch {
	case err != nil:
		return steps.Errored(err)
	case fix == "":
		return steps.Failed(problem, "")
	}
	return steps.Failed(problem, fix).WithoutAction()
}

// upstreamUnsafe says who else than root can change upstream's scripts that a hook runs, or which of them cannot be
// executed; "": no one, none. fix is the command against it.
func upstreamUnsafe(ctx context.Context, e steps.Env, hook string) (problem, fix string, err error) {
	b, err := e.Host.Read(ctx, hook)
	if err != nil {
		return "", "", err
	}
	does, err := readHook(string(b))
	if err != nil { // the row of what the hook does says so
		return "", "", nil
	}
	for _, name := range []string{bootstrapName, path.Base(credsHook)} {
		for _, s := range upstreamScripts(does, name) {
			problem, err := rootsProgram(ctx, e, s.path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return "", "", err
			}
			info, err := e.Host.Stat(ctx, s.path)
			if err != nil {
				return "", "", err
			}
			if problem == "" && s.direct && info.Mode.Perm()&0o100 == 0 {
				problem = fmt.Sprintf("%s has mode %04o: %s cannot execute it",
					s.path, info.Mode.Perm(), shownWord(hook))
			}
			if problem != "" {
				note := "    # read it first: root runs what is in it"
				return problem, permissionFix(e, s.path, "chown root:root %s && chmod 0755 %s"+note), nil
			}
		}
	}
	return "", "", nil
}

// reinstall is the fix for a script that Open OnDemand's package contains, or that the site has elsewhere.
func reinstall(ctx context.Context, e steps.Env, at string) (string, error) {
	if path.Dir(at) != hooksFolder {
		return "", nil // carrick's hook runs the package's
	}
	if e.Host.IsFolder() {
		return "copy the web node's files there: scp -rp WEBNODE:" + hooksFolder + " " +
			steps.Quoted(e.Host.Root+path.Dir(hooksFolder)) +
			"; if they are broken on the web node, reinstall the package ondemand there", nil
	}
	unit, _, err := apache(ctx, e)
	if err != nil {
		return "", err
	}
	if unit == "apache2" {
		return onWebNode("apt-get install --reinstall ondemand"), nil
	}
	return onWebNode("dnf reinstall ondemand"), nil
}
