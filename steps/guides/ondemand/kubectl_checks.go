package ondemand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"carrick/cluster/failure"
	"carrick/cluster/tracked"
	"carrick/steps"
)

func kubectlChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "kubectl-there", Title: "users may run kubectl, and root alone may change it", On: steps.Local,
			Why: "the dashboard runs it as the user. The published page puts it into /usr/local/bin, while Open " +
				"OnDemand looks into /usr/bin where the cluster file names none",
			References: []string{page, "OSC/ood_core: lib/ood_core/job/adapters/kubernetes/batch.rb (bin)"},
			Run:        kubectlThere,
		},
		{
			Name: "kubectl-version", Title: "kubectl is at most one minor version away from the cluster", On: steps.Local,
			Needs: []string{"kubectl-there"},
			Why: "Kubernetes supports no wider skew. The published page takes kubectl from a bucket that has had no " +
				"release since 1.30: what is saved from there may be an error page",
			References: []string{
				"https://kubernetes.io/releases/version-skew-policy/#kubectl", "kubernetes/kubernetes: issue 127796",
			},
			Run: kubectlVersion,
		},
		{
			Name: "kubectl-sudo", Title: "sudo finds kubectl", On: steps.Local, Needs: []string{"kubectl-there"},
			Why: "at login the hook writes the user's credentials with sudo -u USER kubectl, without a path. Where " +
				"sudo's secure_path lacks its folder nothing is written, and the hook's error is seen nowhere",
			References: []string{"OSC/ondemand: hooks/k8s-bootstrap/set-k8s-creds.sh"},
			Run:        kubectlForSudo,
		},
	}
}

// released is the version that was released, of what a server says of itself:
// distributions add words of their own.
var released = regexp.MustCompile(`^v\d+\.\d+\.\d+`)

// fittingDownload is the fix for a kubectl that is missing or does not fit. It installs one at a path.
func fittingDownload(e steps.Env, path string) string {
	server, err := e.Peer.Text("server-version")
	if err != nil || released.FindString(server) == "" {
		return "look up the cluster's version: " + e.PeerKubectl() + " version; then take that kubectl from https://dl.k8s.io"
	}
	return download(released.FindString(server), path)
}

func kubectlThere(ctx context.Context, e steps.Env) steps.Result {
	at := kubectlPath(e)
	problem, err := executable(ctx, e, at)
	if err != nil {
		return steps.Errored(err)
	}
	if problem == "" {
		return steps.Passed("%s, which users may run", at)
	}
	return steps.Failed(problem, kubectlFix(ctx, e))
}

// kubectlFix is the fix for a kubectl that users cannot run, or that others than root can change.
func kubectlFix(ctx context.Context, e steps.Env) string {
	at := kubectlPath(e)
	info, err := e.Host.Stat(ctx, at)
	if err == nil && programFault(e, info, at) == "" {
		if _, open, err := access(ctx, e, at); err == nil && open != "" {
			return onWebNode(open)
		}
	}
	return kubectlAgain(ctx, e)
}

// kubectlAgain is the fix for a kubectl that is missing, that users cannot run or that they can change. It installs a
// new file, because a chown would make root's what another user wrote. Where users can replace it, it goes elsewhere.
func kubectlAgain(ctx context.Context, e steps.Env) string {
	at := kubectlPath(e)
	for _, other := range []string{at, "/usr/local/bin/kubectl", "/usr/bin/kubectl"} {
		problem, err := passable(ctx, e, other)
		switch {
		case problem != "" || err != nil && !errors.Is(err, fs.ErrNotExist):
			continue
		case other != at:
			return fittingDownload(e, other) + "\n# then answer kubectl.path with " + other
		}
		return fittingDownload(e, at)
	}
	return "answer kubectl.path with the path of a kubectl that root alone can change"
}

// kubectlVersion compares the two by their minor versions.
func kubectlVersion(ctx context.Context, e steps.Env) steps.Result {
	server, err := e.Peer.Text("server-version")
	if err != nil {
		return steps.Errored(err)
	}
	theirs, err := version.ParseGeneric(server)
	if err != nil {
		return steps.Errored(fmt.Errorf("the cluster's version %q can't be read: %w", server, err))
	}
	at := kubectlPath(e)
	problem, err := executable(ctx, e, at)
	if err == nil && problem != "" { // where kubectl-there fails, this check runs all the same
		err = fmt.Errorf("%s, so carrick does not run it", problem)
	}
	if err != nil {
		return steps.Errored(err)
	}
	out, err := versionOf(ctx, e, at)
	if r, is := inFolder(err, at+" version --client"); is {
		return r
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) || isNoProgram(err) {
		return steps.Failed(at+" does not run: "+failure.Explain(err), fittingDownload(e, at))
	}
	if err != nil {
		return steps.Errored(err)
	}
	var said struct {
		Client struct {
			Version string `json:"gitVersion"`
		} `json:"clientVersion"`
	}
	if json.Unmarshal([]byte(out), &said) != nil || said.Client.Version == "" {
		return steps.Failed(at+" does not say its version as kubectl does", fittingDownload(e, at))
	}
	ours, err := version.ParseGeneric(said.Client.Version)
	if err != nil {
		return steps.Failed(
			fmt.Sprintf("%s says that it is %q, which is no version", at, said.Client.Version), fittingDownload(e, at),
		)
	}
	found := fmt.Sprintf("kubectl %s, cluster %s", said.Client.Version, server)
	if away := int(ours.Minor()) - int(theirs.Minor()); ours.Major() != theirs.Major() || away < -1 || away > 1 {
		return steps.Failed(found+": more than one minor version apart", fittingDownload(e, at))
	}
	return steps.Passed("%s", found)
}

// versionOf has a kubectl say its version: again once the file is another.
func versionOf(ctx context.Context, e steps.Env, at string) (string, error) {
	info, err := e.Host.Stat(ctx, at)
	if err != nil {
		return "", err
	}
	return tracked.Look(
		ctx, fmt.Sprintf("kubectl-version/%s/%d/%s", at, info.Size, info.ModTime), time.Hour,
		func(ctx context.Context) (string, error) {
			out, _, err := e.Host.Run(ctx, at, "version", "--client", "-o", "json")
			return out, err
		},
	)
}

// isNoProgram tells whether a file could not be started at all: it is no program,
// or one of another machine.
func isNoProgram(err error) bool {
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) ||
		err != nil && strings.Contains(err.Error(), "exec format error")
}
