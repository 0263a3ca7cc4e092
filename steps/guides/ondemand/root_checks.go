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

// withRoots is the From value of checks that use root's credentials.
const withRoots = "root's kubeconfig"

const bootstrapSource = "OSC/ondemand: hooks/k8s-bootstrap/ondemand.yaml"

func rootChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "ca-file", Title: "The CA file on the web node is the cluster's CA", On: steps.Local, FixedBy: "ca-file",
			Why: "Root and, through the cluster file, every user trust only the CA in this file. It contains no secrets, and " +
				"users must be able to read it.",
			References: []string{page},
			Run:        caFileReadable,
		},
		{
			Name: "root-kubeconfig", Title: "Root has a kubeconfig", On: steps.Local, FixedBy: "root-kubeconfig",
			Why:        "The hook runs kubectl as root with this kubeconfig.",
			References: []string{page},
			Run:        rootKubeconfigThere,
		},
		{
			Name: "root-kubeconfig-private", Title: "Only root can read root's kubeconfig", On: steps.Local,
			FixedBy: "root-kubeconfig", Needs: []string{"root-kubeconfig"},
			Why:        "Anyone who can read its credentials can create namespaces and roles on the cluster.",
			References: []string{page},
			Run:        rootKubeconfigPrivate,
		},
		{
			Name: "root-kubeconfig-static", Title: "Root's kubeconfig needs no login and is never rewritten",
			On: steps.Local, FixedBy: "root-kubeconfig", Needs: []string{"root-kubeconfig"},
			Why: "The hook runs unattended, so a login plugin cannot prompt. An inline token must be rewritten. The " +
				"published guide's command exposes it in the process list.",
			References: []string{page},
			Run:        rootKubeconfigStatic,
		},
		{
			Name: "root-identity", Title: "Root acts as the ServiceAccount, not as an admin", On: steps.Local, From: withRoots,
			FixedBy: "root-kubeconfig", Needs: []string{"root-kubeconfig"},
			Why: "The hook runs at each login with input from the portal. With an admin's kubeconfig a bug in it " +
				"affects the whole cluster.",
			References: []string{bootstrapSource},
			Run:        rootIdentity,
		},
		{
			Name: "root-permissions", Title: "Root has all permissions that the hooks need", On: steps.Local, From: withRoots,
			Needs: []string{"root-identity"},
			Why: "A missing permission aborts the hook at a user's login without a visible error. Root also needs each " +
				"permission that it grants to users.",
			References: []string{bootstrapSource, "OSC/ondemand: hooks/k8s-bootstrap/yaml"},
			Run:        rootPermissions,
		},
		{
			Name: "root-renews", Title: "Root can renew its own token", On: steps.Local, From: withRoots,
			Needs: []string{"root-identity"}, When: rotating,
			Why: "Upstream's ClusterRole lacks this permission. The published guide's renewal is always denied, and logins " +
				"fail once the first token expires.",
			References: []string{
				page, bootstrapSource, "OSC/ondemand: .github/workflows/tests.yml (makes the token as cluster-admin)",
			},
			Run: rootRenews,
		},
	}
}

// hookKubeconfigCheck compares the hook's kubeconfig with the kubeconfig that the other root checks use. It belongs to
// the step that writes the hook.
func hookKubeconfigCheck() steps.Check {
	return steps.Check{
		Name: "hook-kubeconfig", Title: "The hook uses the kubeconfig that carrick checks", On: steps.Local,
		FixedBy: "pre-hook", Needs: []string{"root-kubeconfig"},
		Why:        "By default kubectl uses /root/.kube/config, which contains admin credentials on many web nodes.",
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
				return steps.Failed(fmt.Sprintf("the hook uses %s (%s), not %s", used.Path, used.Why, proved.Path), "")
			}
			return steps.Passed("%s (%s)", used.Path, used.Why)
		},
	}
}

// readRootKubeconfig reads the current context of root's kubeconfig. It returns a brokenKubeconfigError if the
// kubeconfig is invalid.
func readRootKubeconfig(ctx context.Context, e steps.Env) (wayIn, inUse, error) {
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

// brokenKubeconfigError is returned if root's kubeconfig exists but is invalid.
type brokenKubeconfigError struct {
	path string
	err  error
}

func (e brokenKubeconfigError) Error() string { return e.path + ": " + e.err.Error() }
func (e brokenKubeconfigError) Unwrap() error { return e.err }

// kubeconfigPath resolves name, a path in a kubeconfig. Relative paths start at the directory of the kubeconfig.
func kubeconfigPath(kubeconfig, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(path.Dir(kubeconfig), name)
}

func rootKubeconfigThere(ctx context.Context, e steps.Env) steps.Result {
	_, used, err := readRootKubeconfig(ctx, e)
	broken := brokenKubeconfigError{}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return steps.Undone(used.Path + " does not exist (" + used.Why + ")")
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
	in, used, err := readRootKubeconfig(ctx, e)
	switch {
	case err != nil:
		return steps.Errored(err)
	case in.Plugin != "":
		return steps.Failed(
			fmt.Sprintf("%s logs in with the plugin %s, which requires an interactive login", used.Path, clean.Text(in.Plugin)),
			"",
		)
	case in.As != "":
		return steps.Failed(
			fmt.Sprintf("%s impersonates %q with the credentials of another user", used.Path, clean.Text(in.As)), "",
		)
	case in.TokenFile != "":
		return steps.Passed("%s reads the token from %s", used.Path, kubeconfigPath(used.Path, in.TokenFile))
	case !in.Token.IsZero():
		return steps.Warned(used.Path+" contains an inline token, so each renewal must rewrite the kubeconfig", "")
	case in.Certificate != nil || in.CertificateFile != "":
		return steps.Warned(used.Path+" uses a client certificate, which cannot be revoked before it expires", "")
	}
	return steps.Failed(used.Path+" has no credentials", "")
}

// withRoot returns a cluster client with the credentials in root's kubeconfig.
func withRoot(ctx context.Context, e steps.Env) (*cluster.Cluster, inUse, error) {
	used, err := rootsKubeconfig(ctx, e)
	if err != nil {
		return nil, used, err
	}
	as, err := e.Host.Cluster(ctx, used.Path)
	return as, used, err
}

// clientUser returns the user in the client certificate, or the credential plugin. For a token it returns "", because
// only the API server can identify the token's user.
func clientUser(in wayIn) string {
	switch {
	case in.Certificate != nil && len(in.Certificate.Organization) > 0:
		return clean.Text(in.Certificate.CommonName + " of " + strings.Join(in.Certificate.Organization, ", "))
	case in.Certificate != nil:
		return clean.Text(in.Certificate.CommonName)
	case in.Plugin != "":
		return "the user that " + clean.Text(in.Plugin) + " logs in as"
	}
	return ""
}

func rootIdentity(ctx context.Context, e steps.Env) steps.Result {
	in, used, err := readRootKubeconfig(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if who := clientUser(in); who != "" {
		return tooPowerful(used, who)
	}
	t, at, err := rootsClaims(ctx, e)
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) {
		return steps.Skipped("blocked by root-token: %s", absent)
	}
	ended := err == nil && t.Expired(time.Now())
	as, _, err := withRoot(ctx, e)
	if broken := (kubeconfig.Error{}); errors.As(err, &broken) {
		// The kubeconfig refers to a file that is missing or invalid.
		return steps.Failed(used.Path+": "+broken.Problems[0].Detail, "").Symptom()
	}
	if errors.Is(err, failure.ErrProxy) {
		return steps.Skipped(
			"%s uses a proxy, which carrick does not support; run on the web node: KUBECONFIG=%s kubectl auth whoami",
			used.Path, steps.Quoted(used.Path),
		)
	}
	if err != nil {
		return steps.Errored(err)
	}
	refused := steps.Failed(
		"the API server at "+as.Server()+" rejects "+used.Path+
			" (401): the token has expired or belongs to another cluster, or the ServiceAccount was recreated",
		"if the ServiceAccount was recreated: "+e.PeerKubectl()+" -n "+namespace+" delete secret "+firstToken+", then\n"+
			newTokenFix(e),
	)
	if ended {
		refused = steps.Skipped(
			"blocked by root-token-lasts: the token in %s has expired", at,
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
