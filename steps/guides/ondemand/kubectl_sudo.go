package ondemand

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"strings"
	"time"

	"carrick/cluster/failure"
	"carrick/cluster/tracked"
	"carrick/steps"
)

// securePath returns the last secure_path that the sudoers file sets for root. If said is false, the file neither sets
// nor unsets secure_path.
func securePath(data []byte) (path string, said bool) {
	text := strings.ReplaceAll(string(data), "\\\n", " ")
	for line := range strings.SplitSeq(text, "\n") {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "Defaults")
		if !ok || rest == "" {
			continue
		}
		// Skip Defaults entries that apply only to callers other than root, to specific commands or to specific target
		// users.
		if scope := rest[0]; scope != ' ' && scope != '\t' {
			rest, ok = strings.CutPrefix(rest, ":root")
			if !ok || rest == "" || rest[0] != ' ' && rest[0] != '\t' {
				continue
			}
		}
		for _, setting := range settings(rest) {
			name, value, is := strings.Cut(setting, "=")
			switch {
			case is && strings.TrimSpace(name) == "secure_path":
				path, said = strings.Trim(strings.TrimSpace(value), `"`), true
			case strings.TrimSpace(setting) == "!secure_path":
				path, said = "", true
			}
		}
	}
	return path, said
}

// settings splits a Defaults line at its commas, except in quotes or after a backslash. It ignores a comment after #.
func settings(line string) []string {
	var out []string
	var b strings.Builder
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line):
			i++
			b.WriteByte(line[i])
		case c == '"':
			quoted = !quoted
			b.WriteByte(c)
		case c == ',' && !quoted:
			out = append(out, b.String())
			b.Reset()
		case c == '#' && !quoted:
			return append(out, b.String())
		default:
			b.WriteByte(c)
		}
	}
	return append(out, b.String())
}

func kubectlForSudo(ctx context.Context, e steps.Env) steps.Result {
	secure, from, err := sudoPath(ctx, e)
	if errors.Is(err, fs.ErrPermission) {
		return steps.Skipped(
			"only root can read /etc/sudoers; run carrick as root, or run on the web node: sudo -u USER kubectl " +
				"version --client",
		)
	}
	if err != nil {
		return steps.Errored(err)
	}
	if from == "" {
		return ranBySudo(ctx, e, "/etc/sudoers sets no secure_path")
	}
	at := kubectlPath(e)
	fix := onWebNode("ln -s " + steps.Quoted(at) + " " + steps.Quoted(
		path.Join(linkFolder(secure), "kubectl"),
	) + "    # or add " + path.Dir(at) + " to secure_path: visudo")
	first, err := firstIn(ctx, e, secure, "kubectl")
	switch {
	case err != nil:
		return steps.Errored(err)
	case first == "":
		return steps.Failed(fmt.Sprintf("no directory in sudo's secure_path contains kubectl (%s in %s)", secure, from), fix)
	}
	if problem, err := executable(ctx, e, first); err != nil {
		return steps.Errored(err)
	} else if problem != "" {
		return steps.Failed("sudo finds "+first+" first, but "+problem,
			onWebNode("ln -sf "+steps.Quoted(at)+" "+steps.Quoted(first)+
				"    # if users can write to "+path.Dir(first)+", remove it from secure_path instead: visudo"))
	}
	same, err := sameFile(ctx, e, first, at)
	if err != nil {
		return steps.Errored(err)
	}
	if !same {
		return steps.Warned(
			fmt.Sprintf("sudo finds %s, not %s, so a login uses two different kubectl binaries", first, at),
			onWebNode("ln -sf "+steps.Quoted(at)+" "+steps.Quoted(first)),
		)
	}
	return ranBySudo(ctx, e, first+", from secure_path in "+from)
}

// ranBySudo runs kubectl through sudo as the trial user. known is the caller's finding about kubectl in secure_path.
// The caller must have verified that only root can change this kubectl. ranBySudo does not run kubectl if no trial user
// is set, if a directory represents the web node, or if secure_path is not set.
func ranBySudo(ctx context.Context, e steps.Env, known string) steps.Result {
	user := e.Answers.Text("trial.user")
	bySecurePath := !strings.HasSuffix(known, "no secure_path")
	static := steps.Passed("%s", known)
	if !bySecurePath {
		static = steps.Skipped(
			"%s; sudo's PATH can only be checked on the web node: sudo -u USER kubectl version --client", known,
		)
	}
	if user == "" || strings.HasPrefix(user, "-") || !bySecurePath || e.Host.IsFolder() {
		return static
	}
	said, err := tracked.Look(ctx, "sudo/"+user+"/"+known, 5*time.Minute, func(ctx context.Context) (string, error) {
		_, said, err := e.Host.Run(ctx, "sudo", "-n", "-u", user, "kubectl", "version", "--client")
		return said, err
	})
	exit := (*exec.ExitError)(nil)
	switch {
	case err == nil:
		return steps.Passed("%s; sudo -u %s kubectl works", known, user)
	case strings.Contains(said, "password is required"):
		return steps.Skipped(
			"sudo requires a password here; run as root: sudo -u %s kubectl version --client", steps.Quoted(user),
		)
	case errors.As(err, &exit):
		return steps.Failed(
			fmt.Sprintf("sudo -u %s kubectl does not run: %s", user, failure.Explain(err)),
			onWebNode("sudo -u "+steps.Quoted(user)+" kubectl version --client"),
		)
	}
	return steps.Errored(err)
}

// sudoPath returns sudo's secure_path and the file that sets it, or "" and "" if no file does.
func sudoPath(ctx context.Context, e steps.Env) (secure, from string, err error) {
	files := []string{"/etc/sudoers"}
	names, err := e.Host.List(ctx, "/etc/sudoers.d")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", err
	}
	for _, name := range names {
		if !strings.Contains(name, ".") && !strings.HasSuffix(name, "~") { // sudo ignores other files
			files = append(files, "/etc/sudoers.d/"+name)
		}
	}
	for _, file := range files {
		data, err := e.Host.Read(ctx, file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", "", err
		}
		if p, said := securePath(data); said && p == "" {
			secure, from = "", ""
		} else if said {
			secure, from = p, file
		}
	}
	return secure, from, nil
}

// firstIn returns the path of the first file with the given name in folders, a colon-separated list of directories. It
// returns "" if there is no such file.
func firstIn(ctx context.Context, e steps.Env, folders, name string) (string, error) {
	for _, folder := range strings.Split(folders, ":") {
		if !path.IsAbs(folder) {
			continue
		}
		at := path.Join(folder, name)
		if there, err := fileExists(ctx, e, at); err != nil || there {
			return at, err
		}
	}
	return "", nil
}

// linkFolder returns the directory for a symlink to kubectl.
func linkFolder(secure string) string {
	for _, folder := range strings.Split(secure, ":") {
		if folder == "/usr/bin" || folder == "/usr/local/bin" {
			return folder
		}
	}
	return "/usr/bin"
}

// sameFile reports whether the files at a and b have the same content.
func sameFile(ctx context.Context, e steps.Env, a, b string) (bool, error) {
	if a == b {
		return true, nil
	}
	x, err := e.Host.Stat(ctx, a)
	if err != nil {
		return false, err
	}
	y, err := e.Host.Stat(ctx, b)
	return err == nil && x.Size == y.Size && x.Hash == y.Hash, err
}
