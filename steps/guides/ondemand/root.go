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

// homeKubeconfig is kubectl's default kubeconfig for root. The published guide creates root's kubeconfig at this path.
const homeKubeconfig = "/root/.kube/config"

// inUse is a file that root uses. The field Why contains the reason, for use in findings.
type inUse struct{ Path, Why string }

// rootsKubeconfig returns carrick's kubeconfig if it exists, or else the kubeconfig that the hook currently uses.
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

// hooksKubeconfig returns the kubeconfig that upstream's bootstrap uses. KUBECONFIG in hook.env takes precedence over
// KUBECONFIG in the pre-hook.
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
		return inUse{homeKubeconfig, "kubectl's default, because no pre-hook exists yet"}, nil
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

// hookInUse returns the path of the portal's pre-hook, which the portal runs as root before a user's session. The
// default is the path at which carrick creates its hook.
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

// exportedKubeconfig returns the last path that script assigns to KUBECONFIG, or "" if script does not set it. It
// returns an error for any value that is not a single absolute path.
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
				"line %d: carrick cannot evaluate the value of KUBECONFIG; set KUBECONFIG to one absolute path",
				i+1,
			)
		}
		path = word
	}
	return path, nil
}

// shellWord returns the first word of line, without quotes and with root's home directory expanded. It returns false if
// the word needs any other expansion.
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

// private returns how users other than root can access the file at path, or "" if they cannot. If a directory
// represents the web node, private does not check the owner.
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

func makePrivate(e steps.Env, path string) string {
	return permissionFix(e, path, "chown root:root %s && chmod 0600 %s")
}

// executable returns the problem if users cannot run the program at path, or if users other than root can change or
// replace it. It returns "" if there is no problem.
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

// programFault is like executable, but does not check the directories above the file.
func programFault(e steps.Env, info host.FileInfo, path string) string {
	switch mode := info.Mode.Perm(); {
	case !info.Mode.IsRegular():
		return path + " is not a regular file"
	case mode&0o001 == 0:
		return fmt.Sprintf("%s has mode %04o: users cannot run it", path, mode)
	case mode&0o022 != 0:
		return fmt.Sprintf("%s has mode %04o, so users other than root can change the file", path, mode)
	case !e.Host.IsFolder() && info.UID > 0:
		return fmt.Sprintf("%s is owned by user %d, who can change the file; root must own it", path, info.UID)
	}
	return ""
}

// passable returns the problem if users cannot reach the file at path, or if users other than root can replace it. It
// returns "" if there is no problem.
func passable(ctx context.Context, e steps.Env, path string) (string, error) {
	problem, _, err := access(ctx, e, path)
	return problem, err
}

// access is like passable, but also returns the chmod command that makes all directories of path searchable. The
// command is "" if users other than root can replace the file.
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

// replaceable returns how users other than root can replace the file at path, or "" if they cannot. real is path with
// all symlinks resolved.
func replaceable(e steps.Env, path string) (real, problem string, err error) {
	real, err = e.Host.RootsAlone(path)
	if foreign := (*host.FolderError)(nil); errors.As(err, &foreign) {
		return "", fmt.Sprintf("users other than root can replace %s because they can write to %s", path, clean.Text(foreign.Path)), nil
	}
	return real, "", err
}

// closed returns the problem if users cannot search a directory of path, or "" if they can search all of them. folders
// lists the closed directories, quoted for a shell.
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
