package ondemand

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/cluster/kubeconfig"
	"carrick/steps"
	"carrick/steps/check"
)

// withRoots is where the checks of root's credential look from.
const withRoots = "root's kubeconfig"

const bootstrapSource = "OSC/ondemand: hooks/k8s-bootstrap/ondemand.yaml"

func rootChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "ca-file", Title: "the CA file on the web node is the cluster's", On: steps.Local, FixedBy: "ca-file",
			Why: "root's kubectl and, by the cluster file, every user's trust that file alone. It is public, and users " +
				"must be able to read it",
			References: []string{page},
			Run:        caFileReadable,
		},
		{
			Name: "root-kubeconfig", Title: "root has a kubeconfig", On: steps.Local, FixedBy: "root-kubeconfig",
			Why:        "the hook runs kubectl as root, with what that says",
			References: []string{page},
			Run:        rootKubeconfigThere,
		},
		{
			Name: "root-kubeconfig-private", Title: "nobody but root may read root's kubeconfig", On: steps.Local,
			FixedBy: "root-kubeconfig", Needs: []string{"root-kubeconfig"},
			Why:        "what it holds or leads to lets whoever reads it make namespaces and roles on the cluster",
			References: []string{page},
			Run:        rootKubeconfigPrivate,
		},
		{
			Name: "root-kubeconfig-static", Title: "root's kubeconfig needs nobody's login, and no renewal writes it",
			On: steps.Local, FixedBy: "root-kubeconfig", Needs: []string{"root-kubeconfig"},
			Why: "the hook runs unattended: a login plugin has nobody to ask. A token that stands in the kubeconfig " +
				"itself has to be written over by each renewal; the published page does that with kubectl config " +
				"set-credentials, which also shows the token in the list of processes",
			References: []string{page},
			Run:        rootKubeconfigStatic,
		},
		{
			Name: "root-identity", Title: "root acts as the ServiceAccount, not as an admin", On: steps.Local, From: withRoots,
			FixedBy: "root-kubeconfig", Needs: []string{"root-kubeconfig"},
			Why: "the hook runs at each login with what the portal hands it: with an admin's kubeconfig a fault in it " +
				"is a fault in the whole cluster",
			References: []string{bootstrapSource},
			Run:        rootIdentity,
		},
		{
			Name: "root-rights", Title: "root may do all that the hooks do", On: steps.Local, From: withRoots,
			Needs: []string{"root-identity"},
			Why: "what is missing ends the hook half way, at the login of a user, and its error is seen nowhere. " +
				"Rights that are only handed on to users must be there, too: Kubernetes lets nobody grant what they lack",
			References: []string{bootstrapSource, "OSC/ondemand: hooks/k8s-bootstrap/yaml"},
			Run:        rootPermissions,
		},
		{
			Name: "root-renews", Title: "root may renew its own token", On: steps.Local, From: withRoots,
			Needs: []string{"root-identity"}, When: rotating,
			Why: "upstream's ClusterRole does not grant it, so the published page's renewal is refused from the first " +
				"run on, and logins fail once the first token has ended",
			References: []string{
				page, bootstrapSource, "OSC/ondemand: .github/workflows/tests.yml (makes the token as cluster-admin)",
			},
			Run: rootRenews,
		},
	}
}

// hookKubeconfigCheck asks whether the hook uses the kubeconfig that these checks
// have proved. It belongs to the step that writes the hook.
func hookKubeconfigCheck() steps.Check {
	return steps.Check{
		Name: "hook-kubeconfig", Title: "the hook uses root's kubeconfig as it was proved", On: steps.Local,
		FixedBy: "pre-hook", Needs: []string{"root-kubeconfig"},
		Why:        "kubectl takes /root/.kube/config where nothing else is said: on many web nodes that is an admin's",
		References: []string{page, "OSC/osc-ood-config: hooks/pre-hook.sh"},
		Run: func(ctx context.Context, e steps.Env) steps.Result {
			used, err := hooksKubeconfig(ctx, e)
			if err != nil {
				return steps.Errored(err)
			}
			proved, err := rootsKubeconfig(ctx, e)
			if err != nil {
				return steps.Errored(err)
			}
			if used.Path != proved.Path {
				if f, err := openHookEnv(ctx, e); err == nil {
					if _, _, set := f.setting("KUBECONFIG"); set {
						said := fmt.Sprintf("upstream's hook uses %s (%s), not %s", shownWord(used.Path), used.Why, proved.Path)
						return steps.Failed(said, f.withoutSetting("KUBECONFIG")).WithoutAction()
					}
				}
				return steps.Failed(fmt.Sprintf("it uses %s (%s), not %s", used.Path, used.Why, proved.Path), "")
			}
			return steps.Passed("%s (%s)", used.Path, used.Why)
		},
	}
}

// rootsWayIn reads root's kubeconfig.
func rootsWayIn(ctx context.Context, e steps.Env) (wayIn, inUse, error) {
	used, err := rootsKubeconfig(ctx, e)
	if err != nil {
		return wayIn{}, used, err
	}
	data, err := e.Host.Read(ctx, used.Path)
	if err != nil {
		return wayIn{}, used, err
	}
	in, err := readWayIn(data)
	if err != nil {
		return wayIn{}, used, brokenKubeconfigError{used.Path, err}
	}
	return in, used, nil
}

// brokenKubeconfigError says what is wrong with root's kubeconfig.
type brokenKubeconfigError struct {
	path string
	err  error
}

func (e brokenKubeconfigError) Error() string { return e.path + ": " + e.err.Error() }
func (e brokenKubeconfigError) Unwrap() error { return e.err }

// kubeconfigPath is a path that a kubeconfig names, which may be relative to its folder.
func kubeconfigPath(kubeconfig, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(path.Dir(kubeconfig), name)
}

func rootKubeconfigThere(ctx context.Context, e steps.Env) steps.Result {
	_, used, err := rootsWayIn(ctx, e)
	broken := brokenKubeconfigError{}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return steps.Undone("there is no " + used.Path + " (" + used.Why + ")")
	case errors.As(err, &broken):
		return steps.Failed(broken.Error(), "")
	case err != nil:
		return steps.Errored(err)
	}
	return steps.Passed("%s (%s)", used.Path, used.Why)
}

func rootKubeconfigPrivate(ctx context.Context, e steps.Env) steps.Result {
	used, err := rootsKubeconfig(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	return onlyRoots(ctx, e, used.Path)
}

func rootKubeconfigStatic(ctx context.Context, e steps.Env) steps.Result {
	in, used, err := rootsWayIn(ctx, e)
	switch {
	case err != nil:
		return steps.Errored(err)
	case in.Plugin != "":
		return steps.Failed(
			fmt.Sprintf("%s logs in by %s: that is somebody's own login", used.Path, clean.Text(in.Plugin)), "",
		)
	case in.As != "":
		return steps.Failed(
			fmt.Sprintf("%s acts as %q, by the rights of whoever it logs in as", used.Path, clean.Text(in.As)), "",
		)
	case in.TokenFile != "":
		return steps.Passed("%s takes the token from %s", used.Path, kubeconfigPath(used.Path, in.TokenFile))
	case !in.Token.IsZero():
		return steps.Warned(used.Path+" holds the token itself: each renewal has to write the kubeconfig over", "")
	case in.Certificate != nil || in.CertificateFile != "":
		return steps.Warned(used.Path+" logs in with a client certificate, which nothing takes back before it ends", "")
	}
	return steps.Failed(used.Path+" holds nothing to log in with", "")
}

// withRoot is the cluster seen with root's kubeconfig and nothing else.
func withRoot(ctx context.Context, e steps.Env) (*cluster.Cluster, inUse, error) {
	used, err := rootsKubeconfig(ctx, e)
	if err != nil {
		return nil, used, err
	}
	as, err := e.Host.Cluster(ctx, used.Path)
	return as, used, err
}

// somebodys is who a kubeconfig logs in as, where it says so itself: by a client
// certificate or a plugin. A token has to be shown to the API server.
func somebodys(in wayIn) string {
	switch {
	case in.Certificate != nil && len(in.Certificate.Organization) > 0:
		return clean.Text(in.Certificate.CommonName + " of " + strings.Join(in.Certificate.Organization, ", "))
	case in.Certificate != nil:
		return clean.Text(in.Certificate.CommonName)
	case in.Plugin != "":
		return "whoever " + clean.Text(in.Plugin) + " logs in as"
	}
	return ""
}

func rootIdentity(ctx context.Context, e steps.Env) steps.Result {
	in, used, err := rootsWayIn(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if who := somebodys(in); who != "" {
		return tooPowerful(used, who)
	}
	t, at, err := rootsClaims(ctx, e)
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) {
		return steps.Skipped("says nothing before root has a token (root-token): %s", absent)
	}
	ended := err == nil && t.Expired(time.Now())
	as, _, err := withRoot(ctx, e)
	if broken := (kubeconfig.Error{}); errors.As(err, &broken) {
		// a file that it names is missing or wrong
		return steps.Failed(used.Path+": "+broken.Problems[0].Detail, "").Symptom()
	}
	if errors.Is(err, failure.ErrProxy) {
		return steps.Skipped(
			"%s goes through a proxy, which carrick does not follow; on the web node: KUBECONFIG=%s kubectl auth whoami",
			used.Path, steps.Quoted(used.Path),
		)
	}
	if err != nil {
		return steps.Errored(err)
	}
	refused := steps.Failed("the API server at "+as.Server()+" refuses "+used.Path+" (401): its token has ended, "+
		"or is another cluster's, or the ServiceAccount was made anew",
		"where the account was made anew: "+e.PeerKubectl()+" -n "+namespace+" delete secret "+firstToken+", then\n"+
			newTokenFix(e))
	if ended {
		refused = steps.Skipped(
			"says nothing before root's token has life left (root-token-lasts): the one in %s has ended", at,
		)
	}
	r := check.AuthenticatesAs(
		ctx, as, accountUser, func() steps.Result { return refused },
		func(name string) steps.Result { return tooPowerful(used, name) },
	)
	switch {
	case errors.As(r.Err, new(*tls.CertificateVerificationError)):
		return steps.Failed(used.Path+": "+failure.Explain(r.Err), "")
	case r.Status == steps.Pass:
		r.Found += ", with " + used.Path
	}
	return r
}

func tooPowerful(used inUse, who string) steps.Result {
	return steps.Failed(fmt.Sprintf("%s (%s) acts as %s, not as %s", used.Path, used.Why, who, accountUser), "")
}
