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
			Name: "kubectl-installed", Title: "Users can run kubectl, and only root can change it", On: steps.Local,
			Why: "The dashboard runs kubectl as the user. Open OnDemand's default is /usr/bin/kubectl, but the published " +
				"guide installs /usr/local/bin/kubectl.",
			References: []string{page, "OSC/ood_core: lib/ood_core/job/adapters/kubernetes/batch.rb (bin)"},
			Run:        kubectlThere,
		},
		{
			Name: "kubectl-version", Title: "The kubectl version is within one minor of the cluster", On: steps.Local,
			Needs: []string{"kubectl-installed"},
			Why: "Kubernetes does not support a wider skew. The published guide's download bucket has no release since 1.30 " +
				"and can return an error page.",
			References: []string{
				"https://kubernetes.io/releases/version-skew-policy/#kubectl", "kubernetes/kubernetes: issue 127796",
			},
			Run: kubectlVersion,
		},
		{
			Name: "kubectl-sudo", Title: "The hook's sudo finds kubectl", On: steps.Local, Needs: []string{"kubectl-installed"},
			Why: "At login the hook runs sudo -u USER kubectl. If secure_path lacks kubectl's directory, the hook " +
				"writes no credentials and no error is shown.",
			References: []string{"OSC/ondemand: hooks/k8s-bootstrap/set-k8s-creds.sh"},
			Run:        kubectlForSudo,
		},
	}
}

// released matches the upstream release in a server version, without a distribution's suffix.
var released = regexp.MustCompile(`^v\d+\.\d+\.\d+`)

// matchingDownload returns the fix that installs the cluster's version of kubectl at path.
func matchingDownload(e steps.Env, path string) string {
	server, err := e.Peer.Text("server-version")
	if err != nil || released.FindString(server) == "" {
		return "check the cluster's version: " + e.PeerKubectl() +
			" version; then download the same version of kubectl from https://dl.k8s.io"
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
		return steps.Passed("users can run %s", at)
	}
	return steps.Failed(problem, kubectlFix(ctx, e))
}

// kubectlFix returns the command that opens the directories above kubectl if nothing else is wrong. Otherwise it
// returns the fix from reinstallKubectl.
func kubectlFix(ctx context.Context, e steps.Env) string {
	at := kubectlPath(e)
	info, err := e.Host.Stat(ctx, at)
	if err == nil && programFault(e, info, at) == "" {
		if _, open, err := access(ctx, e, at); err == nil && open != "" {
			return onWebNode(open)
		}
	}
	return reinstallKubectl(ctx, e)
}

// reinstallKubectl returns the fix that installs a new kubectl. A chown of the existing file is not safe, because
// another user might have written it. If users can replace the file at its path, the fix installs kubectl in another
// directory.
func reinstallKubectl(ctx context.Context, e steps.Env) string {
	at := kubectlPath(e)
	for _, other := range []string{at, "/usr/local/bin/kubectl", "/usr/bin/kubectl"} {
		problem, err := passable(ctx, e, other)
		switch {
		case problem != "" || err != nil && !errors.Is(err, fs.ErrNotExist):
			continue
		case other != at:
			return matchingDownload(e, other) + "\n# then set kubectl.path to " + other
		}
		return matchingDownload(e, at)
	}
	return "set kubectl.path to the path of a kubectl that only root can change"
}

func kubectlVersion(ctx context.Context, e steps.Env) steps.Result {
	server, err := e.Peer.Text("server-version")
	if err != nil {
		return steps.Errored(err)
	}
	theirs, err := version.ParseGeneric(server)
	if err != nil {
		return steps.Errored(fmt.Errorf("parsing the cluster's version %q: %w", server, err))
	}
	at := kubectlPath(e)
	problem, err := executable(ctx, e, at)
	if err == nil && problem != "" { // this check also runs if kubectl-installed fails
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
		return steps.Failed(at+" does not run: "+failure.Explain(err), matchingDownload(e, at))
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
		return steps.Failed(at+" does not report its version in kubectl's format", matchingDownload(e, at))
	}
	ours, err := version.ParseGeneric(said.Client.Version)
	if err != nil {
		return steps.Failed(
			fmt.Sprintf("%s reports version %q, which is not a valid version", at, said.Client.Version), matchingDownload(e, at),
		)
	}
	found := fmt.Sprintf("kubectl %s, cluster %s", said.Client.Version, server)
	if away := int(ours.Minor()) - int(theirs.Minor()); ours.Major() != theirs.Major() || away < -1 || away > 1 {
		return steps.Failed(found+": more than one minor version apart", matchingDownload(e, at))
	}
	return steps.Passed("%s", found)
}

// versionOf returns the output of kubectl version for the kubectl at path at. It caches the output by the size and
// modification time of the file.
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

// isNoProgram reports whether err means that the file is not a program for this machine.
func isNoProgram(err error) bool {
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) ||
		err != nil && strings.Contains(err.Error(), "exec format error")
}
