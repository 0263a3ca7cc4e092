package ondemand

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"carrick/cluster/clean"
	"carrick/cluster/host"
	"carrick/steps"
)

// homeKubeconfig is kubectl's default. The published page creates root's kubeconfig there.
const homeKubeconfig = "/root/.kube/config"

// inUse is a file that root uses, and the reason.
type inUse struct{ Path, Why string }

// rootsKubeconfig returns the kubeconfig with which root reaches the cluster: carrick's if it exists, or else the one
// that the hook uses now.
func rootsKubeconfig(ctx context.Context, e steps.Env) (inUse, error) {
	there, err := fileExists(ctx, e, rootKubeconfig)
	if err != nil {
		return inUse{}, err
	}
	if there {
		return inUse{rootKubeconfig, "carrick's"}, nil
	}
	return hooksKubeconfig(ctx, e)
}

// hooksKubeconfig returns the kubeconfig that upstream's bootstrap uses now: the one that hook.env sets, or else the
// one that the pre-hook exports, or else kubectl's default.
func hooksKubeconfig(ctx context.Context, e steps.Env) (inUse, error) {
	hook, err := hookInUse(ctx, e)
	if err != nil {
		return inUse{}, err
	}
	if at, err := envKubeconfig(ctx, e); err != nil || at != "" {
		return inUse{at, hookEnv + " sets KUBECONFIG"}, err
	}
	script, err := e.Host.Read(ctx, hook)
	if errors.Is(err, fs.ErrNotExist) {
		return inUse{homeKubeconfig, "kubectl's default, as no pre-hook exists yet"}, nil
	}
	if err != nil {
		return inUse{}, err
	}
	path, err := exportedKubeconfig(string(script))
	switch {
	case err != nil:
		return inUse{}, fmt.Errorf("%s: %w", hook, err)
	case path == "":
		return inUse{homeKubeconfig, hook + " exports no KUBECONFIG"}, nil
	}
	return inUse{path, "exported in " + hook}, nil
}

// hookInUse returns the script that the portal runs as root before a user's session, or else the path at which carrick
// creates one.
func hookInUse(ctx context.Context, e steps.Env) (string, error) {
	data, err := e.Host.Read(ctx, portalFile)
	if errors.Is(err, fs.ErrNotExist) {
		return preHook, nil
	}
	if err != nil {
		return "", err
	}
	var portal struct {
		Command any `yaml:"pun_pre_hook_root_cmd"`
	}
	if err := yaml.Unmarshal(data, &portal); err != nil {
		return "", fmt.Errorf("%s is not YAML", portalFile)
	}
	text, _ := portal.Command.(string)
	if words := strings.Fields(text); len(words) > 0 && strings.HasPrefix(words[0], "/") {
		return words[0], nil
	}
	return preHook, nil
}

var kubeconfigLine = regexp.MustCompile(`^\s*(?:export\s+|declare\s+-x\s+)?KUBECONFIG=(.*)$`)

// exportedKubeconfig returns the last path that a shell script assigns to KUBECONFIG, or "" if there is none.
func exportedKubeconfig(script string) (string, error) {
	path := ""
	for i, line := range strings.Split(script, "\n") {
		m := kubeconfigLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		word, ok := shellWord(m[1])
		if !ok || strings.Contains(word, ":") || !strings.HasPrefix(word, "/") {
			return "", fmt.Errorf(
				"line %d: the value of KUBECONFIG cannot be determined without running the script: set it to one absolute path",
				i+1,
			)
		}
		path = word
	}
	return path, nil
}

// shellWord returns the first word of a line as a shell reads it. It returns false if that requires more than removing
// quotes and expanding root's home directory.
func shellWord(line string) (string, bool) {
	line = strings.TrimRight(line, "\r")
	var b strings.Builder
	var quote rune
	for _, r := range line {
		switch {
		case quote == 0 && strings.ContainsRune(" \t;&|#", r):
			return homeOf(b.String())
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case r == quote:
			quote = 0
		case r == '\\' || r == '`' || quote == '\'' && r == '$':
			return "", false
		default:
			b.WriteRune(r)
		}
	}
	if quote != 0 {
		return "", false
	}
	return homeOf(b.String())
}

func homeOf(word string) (string, bool) {
	for _, home := range []string{"${HOME}/", "$HOME/", "~/"} {
		if rest, ok := strings.CutPrefix(word, home); ok {
			word = "/root/" + rest
			break
		}
	}
	return word, word != "" && !strings.Contains(word, "$")
}

func fileExists(ctx context.Context, e steps.Env, path string) (bool, error) {
	_, err := e.Host.Stat(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// private returns why users other than root can access a secret file, or "" if they cannot. If a folder represents the
// web node, the owner is not checked.
func private(ctx context.Context, e steps.Env, path string) (string, error) {
	info, err := e.Host.Stat(ctx, path)
	if err != nil {
		return "", err
	}
	switch {
	case !info.Mode.IsRegular():
		return path + " is not a regular file", nil
	case info.Mode.Perm()&0o077 != 0:
		return fmt.Sprintf("%s has mode %04o: users other than root can access it", path, info.Mode.Perm()), nil
	case !e.Host.IsFolder() && info.UID > 0:
		return fmt.Sprintf("%s is owned by user %d, not by root", path, info.UID), nil
	}
	return "", nil
}

// onlyRoots verifies that only root can access a file.
func onlyRoots(ctx context.Context, e steps.Env, path string) steps.Result {
	problem, err := private(ctx, e, path)
	switch {
	case err != nil:
		return steps.Errored(err)
	case problem != "":
		return steps.Failed(problem, makePrivate(e, path))
	}
	return steps.Passed("%s", path)
}

// makePrivate returns the fix that allows only root to access a file.
func makePrivate(e steps.Env, path string) string {
	return permissionFix(e, path, "chown root:root %s && chmod 0600 %s")
}

// executable returns why users of the web node cannot run a program, or why they can change it. It returns "" if
// neither is the case.
func executable(ctx context.Context, e steps.Env, path string) (string, error) {
	info, err := e.Host.Stat(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return path + " does not exist", nil
	}
	if err != nil {
		return "", err
	}
	if problem := programFault(e, info, path); problem != "" {
		return problem, nil
	}
	return passable(ctx, e, path)
}

// programFault is like executable, but does not check the folders of the path.
func programFault(e steps.Env, info host.FileInfo, path string) string {
	switch mode := info.Mode.Perm(); {
	case !info.Mode.IsRegular():
		return path + " is not a regular file"
	case mode&0o001 == 0:
		return fmt.Sprintf("%s has mode %04o: users cannot run it", path, mode)
	case mode&0o022 != 0:
		return fmt.Sprintf("%s has mode %04o: users other than root can change what root runs", path, mode)
	case !e.Host.IsFolder() && info.UID > 0:
		return fmt.Sprintf("%s is owned by user %d, who can change what root runs", path, info.UID)
	}
	return ""
}

// passable returns which folder prevents users from reaching a file, or allows users other than root to replace it. It
// returns "" if there is none.
func passable(ctx context.Context, e steps.Env, path string) (string, error) {
	problem, _, err := access(ctx, e, path)
	return problem, err
}

// access is like passable, but also returns the command that makes the closed folders searchable. The command is "" if
// the problem is another one.
func access(ctx context.Context, e steps.Env, path string) (problem, open string, err error) {
	real, problem, err := replaceable(e, path)
	if err != nil || problem != "" {
		return problem, "", err
	}
	problem, folders, err := closed(ctx, e, path)
	if err == nil && problem == "" && real != path {
		problem, folders, err = closed(ctx, e, real)
	}
	if err != nil || problem == "" {
		return problem, "", err
	}
	return problem, "chmod o+x " + strings.Join(folders, " "), nil
}

// replaceable returns how users other than root can replace the file at a path, or "" if they cannot. real is the path
// with symlinks resolved.
func replaceable(e steps.Env, path string) (real, problem string, err error) {
	real, err = e.Host.RootsAlone(path)
	if foreign := (*host.FolderError)(nil); errors.As(err, &foreign) {
		return "", fmt.Sprintf("users other than root can replace %s through %s", path, clean.Text(foreign.Path)), nil
	}
	return real, "", err
}

// closed returns which folder of a path prevents users from reaching the file, or "" if none does. folders are all such
// folders, quoted for a shell.
func closed(ctx context.Context, e steps.Env, path string) (problem string, folders []string, err error) {
	for at := strings.LastIndexByte(path, '/'); at > 0; at = strings.LastIndexByte(path[:at], '/') {
		folder, err := e.Host.Stat(ctx, path[:at])
		if err != nil {
			return "", nil, err
		}
		if folder.Mode.Perm()&0o001 != 0 {
			continue
		}
		folders = append(folders, steps.Quoted(path[:at]))
		if problem == "" {
			problem = fmt.Sprintf("%s has mode %04o, so users cannot reach %s", path[:at], folder.Mode.Perm(), path)
		}
	}
	return problem, folders, nil
}
