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

// upstreamScript is one of upstream's scripts that the pre-hook calls.
type upstreamScript struct {
	path   string
	direct bool // the pre-hook executes the file directly, so it must be executable
}

// upstreamScripts returns the files with a base name that a hook refers to by absolute path.
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

// usedScripts returns the file names of upstream's scripts that users' logins depend on, with the consequence if one
// fails.
func usedScripts(e steps.Env) map[string]string {
	out := map[string]string{bootstrapName: "users get no namespace"}
	if withOIDC(e) {
		out[path.Base(credsHook)] = "users' tokens are not written to their kubeconfig"
	}
	return out
}

// upstreamBroken returns which of the upstream scripts that a hook runs certainly do nothing, or "". If a hook names
// several files of the same name, it is enough that one of them works.
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

// brokenScript returns why one of upstream's scripts certainly does nothing, or "". Its content depends on the version,
// so the only faults are a missing file, a file without commands, and an exit before kubectl runs.
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
	if !strings.HasPrefix(script, "#!") { // bash runs it anyway
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

// upstreamWorks verifies that the upstream scripts that a hook runs exist and do something.
func upstreamWorks(ctx context.Context, e steps.Env, does hookReading) steps.Result {
	if e.Host.IsFolder() {
		there, err := fileExists(ctx, e, path.Dir(hooksFolder))
		if err != nil {
			return steps.Errored(err)
		}
		if !there { // the folder needs no other file of Open OnDemand's package
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

// upstreamUnsafe returns which of the upstream scripts that a hook runs can be changed by users other than root or
// cannot be executed, or "". fix is the command that corrects it.
func upstreamUnsafe(ctx context.Context, e steps.Env, hook string) (problem, fix string, err error) {
	b, err := e.Host.Read(ctx, hook)
	if err != nil {
		return "", "", err
	}
	does, err := readHook(string(b))
	if err != nil { // the check that reads the hook reports the error
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

// reinstall returns the fix for a broken script of Open OnDemand's package, or "" if the script is in another folder.
func reinstall(ctx context.Context, e steps.Env, at string) (string, error) {
	if path.Dir(at) != hooksFolder {
		return "", nil // carrick's hook runs the package's script
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
