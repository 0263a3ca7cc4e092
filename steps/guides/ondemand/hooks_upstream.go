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

type upstreamScript struct {
	path   string
	direct bool // the pre-hook executes the file directly, so it must be executable
}

// upstreamScripts returns the scripts with the given base name that the hook mentions by absolute path.
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

// usedScripts maps the base name of each upstream script that logins require to the consequence of a failure.
func usedScripts(e steps.Env) map[string]string {
	out := map[string]string{bootstrapName: "users get no namespace"}
	if withOIDC(e) {
		out[path.Base(credsHook)] = "users' tokens are not written to their kubeconfigs"
	}
	return out
}

// upstreamBroken returns why an upstream script of the hook cannot work, or "" if all can. at is the path of the
// script. If the hook mentions several files with the same base name, only one of them must work.
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

// brokenScript returns why the given upstream script cannot work, or "" if there is no reason. The content of the
// script depends on upstream's version. Therefore brokenScript detects only a missing file, a file without commands,
// and an exit before kubectl runs.
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
	if !strings.HasPrefix(script, "#!") { // bash also runs a file without #!
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

func upstreamWorks(ctx context.Context, e steps.Env, does hookReading) steps.Result {
	if e.Host.IsFolder() {
		there, err := fileExists(ctx, e, path.Dir(hooksFolder))
		if err != nil {
			return steps.Errored(err)
		}
		if !there { // a directory that represents the web node does not need the package's files
			return steps.Skipped(
				"%s is missing from the directory that represents the web node. Copy it there: scp -rp WEBNODE:%[1]s %s",
				path.Dir(hooksFolder), steps.Quoted(e.Host.Root+path.Dir(path.Dir(hooksFolder))),
			)
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

// upstreamUnsafe returns a problem if users other than root can change an upstream script of the hook, or if root
// cannot execute the script. fix is the command that corrects the script's permissions.
func upstreamUnsafe(ctx context.Context, e steps.Env, hook string) (problem, fix string, err error) {
	b, err := e.Host.Read(ctx, hook)
	if err != nil {
		return "", "", err
	}
	does, err := readHook(string(b))
	if err != nil { // another check reports the error
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
				problem = fmt.Sprintf("%s has mode %04o, so %s cannot execute it",
					s.path, info.Mode.Perm(), shownWord(hook))
			}
			if problem != "" {
				note := "    # read the file first: root runs it"
				return problem, permissionFix(e, s.path, "chown root:root %s && chmod 0755 %s"+note), nil
			}
		}
	}
	return "", "", nil
}

// reinstall returns the fix for a broken script of Open OnDemand's package, or "" if the script is not from the
// package.
func reinstall(ctx context.Context, e steps.Env, at string) (string, error) {
	if path.Dir(at) != hooksFolder {
		return "", nil // use the default fix: carrick's hook runs the package's script
	}
	if e.Host.IsFolder() {
		return "copy the web node's files into the directory: scp -rp WEBNODE:" + hooksFolder + " " +
			steps.Quoted(e.Host.Root+path.Dir(hooksFolder)) +
			"; if the files on the web node are also broken, reinstall the ondemand package on the web node", nil
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
