package ondemand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"carrick/cluster"
	"carrick/steps"
)

func kubectlChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "kubectl-there", Title: "users may run kubectl, and root alone may change it", On: steps.Local,
			Why: "the dashboard runs it as the user. The published page puts it into /usr/local/bin, while Open OnDemand looks into /usr/bin where the cluster file names none",
			See: []string{page, "OSC/ood_core: lib/ood_core/job/adapters/kubernetes/batch.rb (bin)"},
			Run: kubectlThere,
		},
		{
			Name: "kubectl-version", Title: "kubectl is at most one minor version away from the cluster", On: steps.Local, Needs: []string{"kubectl-there"},
			Why: "Kubernetes supports no wider skew. The published page takes kubectl from a bucket that has had no release since 1.30: what is saved from there may be an error page",
			See: []string{"https://kubernetes.io/releases/version-skew-policy/#kubectl", "kubernetes/kubernetes: issue 127796"},
			Run: kubectlVersion,
		},
		{
			Name: "kubectl-sudo", Title: "sudo finds kubectl", On: steps.Local, Needs: []string{"kubectl-there"},
			Why: "at login the hook writes the user's credentials with sudo -u USER kubectl, without a path. Where sudo's secure_path lacks its folder nothing is written, and the hook's error is seen nowhere",
			See: []string{"OSC/ondemand: hooks/k8s-bootstrap/set-k8s-creds.sh"},
			Run: kubectlForSudo,
		},
	}
}

// released is the version that was released, of what a server says of itself:
// distributions add words of their own.
var released = regexp.MustCompile(`^v\d+\.\d+\.\d+`)

// fittingDownload is the fix for a kubectl that is missing or does not fit.
func fittingDownload(e steps.Env) string {
	server, err := e.Peer.Text("server-version")
	if err != nil || released.FindString(server) == "" {
		return "look up the cluster's version: " + e.PeerKubectl() + " version; then take that kubectl from https://dl.k8s.io"
	}
	return download(released.FindString(server), kubectlPath(e))
}

func kubectlThere(ctx context.Context, e steps.Env) steps.Result {
	at := kubectlPath(e)
	problem, err := executable(ctx, e, at)
	if err != nil {
		return steps.Unseen(err)
	}
	if problem == "" {
		return steps.Passed("%s, which users may run", at)
	}
	if there, err := stands(ctx, e, at); err == nil && there {
		return steps.Failed(problem, onWebNode("chown root:root "+steps.Quoted(at)+" && chmod 0755 "+steps.Quoted(at)))
	}
	return steps.Failed(problem, fittingDownload(e))
}

// kubectlVersion compares the two by their minor versions.
func kubectlVersion(ctx context.Context, e steps.Env) steps.Result {
	server, err := e.Peer.Text("server-version")
	if err != nil {
		return steps.Unseen(err)
	}
	theirs, err := version.ParseGeneric(server)
	if err != nil {
		return steps.Unseen(fmt.Errorf("the cluster's version %q can't be read: %w", server, err))
	}
	at := kubectlPath(e)
	out, err := versionOf(ctx, e, at)
	if r, is := inFolder(err, at+" version --client"); is {
		return r
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) || isNoProgram(err) {
		return steps.Failed(at+" does not run: "+cluster.Explain(err), fittingDownload(e))
	}
	if err != nil {
		return steps.Unseen(err)
	}
	var said struct {
		Client struct {
			Version string `json:"gitVersion"`
		} `json:"clientVersion"`
	}
	if json.Unmarshal([]byte(out), &said) != nil || said.Client.Version == "" {
		return steps.Failed(at+" does not say its version as kubectl does", fittingDownload(e))
	}
	ours, err := version.ParseGeneric(said.Client.Version)
	if err != nil {
		return steps.Failed(fmt.Sprintf("%s says that it is %q, which is no version", at, said.Client.Version), fittingDownload(e))
	}
	found := fmt.Sprintf("kubectl %s, cluster %s", said.Client.Version, server)
	if away := int(ours.Minor()) - int(theirs.Minor()); ours.Major() != theirs.Major() || away < -1 || away > 1 {
		return steps.Failed(found+": more than one minor version apart", fittingDownload(e))
	}
	return steps.Passed("%s", found)
}

// versionOf has a kubectl say its version: again once the file is another.
func versionOf(ctx context.Context, e steps.Env, at string) (string, error) {
	info, err := e.Host.Stat(ctx, at)
	if err != nil {
		return "", err
	}
	return cluster.Look(ctx, fmt.Sprintf("kubectl-version/%s/%d/%s", at, info.Size, info.ModTime), time.Hour, func(ctx context.Context) (string, error) {
		out, _, err := e.Host.Run(ctx, at, "version", "--client", "-o", "json")
		return out, err
	})
}

// isNoProgram tells whether a file could not be started at all: it is no program,
// or one of another machine.
func isNoProgram(err error) bool {
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) || err != nil && strings.Contains(err.Error(), "exec format error")
}

func kubectlForSudo(ctx context.Context, e steps.Env) steps.Result {
	secure, from, err := sudoPath(ctx, e)
	if errors.Is(err, fs.ErrPermission) {
		return steps.Skipped("only root may read /etc/sudoers: run carrick as root, or on the web node: sudo -u USER kubectl version --client")
	}
	if err != nil {
		return steps.Unseen(err)
	}
	if from == "" {
		return ranBySudo(ctx, e, "/etc/sudoers names no secure_path")
	}
	at := kubectlPath(e)
	fix := onWebNode("ln -s " + steps.Quoted(at) + " " + steps.Quoted(path.Join(linkFolder(secure), "kubectl")) + "    # or put " + path.Dir(at) + " into secure_path: visudo")
	first, err := firstIn(ctx, e, secure, "kubectl")
	switch {
	case err != nil:
		return steps.Unseen(err)
	case first == "":
		return steps.Failed(fmt.Sprintf("no folder of sudo's secure_path holds kubectl (%s in %s)", secure, from), fix)
	}
	if problem, err := executable(ctx, e, first); err != nil {
		return steps.Unseen(err)
	} else if problem != "" {
		return steps.Failed("sudo finds "+first+" first, but "+problem, onWebNode("chmod 0755 "+steps.Quoted(first)))
	}
	same, err := sameFile(ctx, e, first, at)
	if err != nil {
		return steps.Unseen(err)
	}
	if !same {
		return steps.Warned(fmt.Sprintf("sudo finds %s, which is not %s: two versions of kubectl are used at a login", first, at),
			onWebNode("ln -sf "+steps.Quoted(at)+" "+steps.Quoted(first)))
	}
	return ranBySudo(ctx, e, first+", by secure_path in "+from)
}

// ranBySudo has sudo run it for the trial user, where there is one and a machine.
func ranBySudo(ctx context.Context, e steps.Env, known string) steps.Result {
	user := e.Answers.Text("trial.user")
	bySecurePath := !strings.HasSuffix(known, "no secure_path")
	static := steps.Passed("%s", known)
	if !bySecurePath {
		static = steps.Skipped("%s: which PATH sudo gives can only be seen on the web node: sudo -u USER kubectl version --client", known)
	}
	if user == "" || e.Host.IsFolder() {
		return static
	}
	if strings.HasPrefix(user, "-") {
		return static
	}
	said, err := cluster.Look(ctx, "sudo/"+user+"/"+known, 5*time.Minute, func(ctx context.Context) (string, error) {
		_, said, err := e.Host.Run(ctx, "sudo", "-n", "-u", user, "kubectl", "version", "--client")
		return said, err
	})
	exit := (*exec.ExitError)(nil)
	switch {
	case err == nil:
		return steps.Passed("%s; sudo -u %s kubectl runs", known, user)
	case strings.Contains(said, "password is required"):
		return steps.Skipped("carrick may not use sudo here; run as root: sudo -u %s kubectl version --client", steps.Quoted(user))
	case errors.As(err, &exit):
		return steps.Failed(fmt.Sprintf("sudo -u %s kubectl does not run: %s", user, cluster.Explain(err)), onWebNode("sudo -u "+steps.Quoted(user)+" kubectl version --client"))
	}
	return steps.Unseen(err)
}

// sudoPath is sudo's secure_path and the file that sets it; "" and "": none does.
func sudoPath(ctx context.Context, e steps.Env) (secure, from string, err error) {
	files := []string{"/etc/sudoers"}
	names, err := e.Host.List(ctx, "/etc/sudoers.d")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", err
	}
	for _, name := range names {
		if !strings.Contains(name, ".") && !strings.HasSuffix(name, "~") { // as sudo passes over those
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

// firstIn is the first file of that name in the folders of a path; "": none.
func firstIn(ctx context.Context, e steps.Env, folders, name string) (string, error) {
	for _, folder := range strings.Split(folders, ":") {
		if !path.IsAbs(folder) {
			continue
		}
		at := path.Join(folder, name)
		if there, err := stands(ctx, e, at); err != nil || there {
			return at, err
		}
	}
	return "", nil
}

// linkFolder is where a link to kubectl is best put, of sudo's folders.
func linkFolder(secure string) string {
	for _, folder := range strings.Split(secure, ":") {
		if folder == "/usr/bin" || folder == "/usr/local/bin" {
			return folder
		}
	}
	return "/usr/bin"
}

// sameFile tells whether two paths lead to one file, or to two alike.
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
