package ondemand

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/check"
)

// withRoots is where the checks of root's credential look from.
const withRoots = "root's kubeconfig"

const bootstrapSource = "OSC/ondemand: hooks/k8s-bootstrap/ondemand.yaml"

func rootChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "ca-file", Title: "the CA file on the web node is the cluster's", On: steps.Local, Mend: "ca-file",
			Why: "root's kubectl and, by the cluster file, every user's trust that file alone. It is public, and users must be able to read it",
			See: []string{page},
			Run: caFile,
		},
		{
			Name: "root-kubeconfig", Title: "root has a kubeconfig", On: steps.Local, Mend: "root-kubeconfig",
			Why: "the hook runs kubectl as root, with what that says",
			See: []string{page},
			Run: rootKubeconfigThere,
		},
		{
			Name: "root-kubeconfig-private", Title: "nobody but root may read root's kubeconfig", On: steps.Local, Mend: "root-kubeconfig", Needs: []string{"root-kubeconfig"},
			Why: "what it holds or leads to lets whoever reads it make namespaces and roles on the cluster",
			See: []string{page},
			Run: rootKubeconfigPrivate,
		},
		{
			Name: "root-kubeconfig-static", Title: "root's kubeconfig needs nobody's login, and no renewal writes it", On: steps.Local, Mend: "root-kubeconfig", Needs: []string{"root-kubeconfig"},
			Why: "the hook runs unattended: a login plugin has nobody to ask. A token that stands in the kubeconfig itself has to be written over by each renewal; the published page does that with kubectl config set-credentials, which also shows the token in the list of processes",
			See: []string{page},
			Run: rootKubeconfigStatic,
		},
		{
			Name: "root-identity", Title: "root acts as the ServiceAccount, not as an admin", On: steps.Local, From: withRoots, Mend: "root-kubeconfig", Needs: []string{"root-kubeconfig"},
			Why: "the hook runs at each login with what the portal hands it: with an admin's kubeconfig a fault in it is a fault in the whole cluster",
			See: []string{bootstrapSource},
			Run: rootIdentity,
		},
		{
			Name: "root-rights", Title: "root may do all that the hooks do", On: steps.Local, From: withRoots, Needs: []string{"root-identity"},
			Why: "what is missing ends the hook half way, at the login of a user, and its error is seen nowhere. Rights that are only handed on to users must be there, too: Kubernetes lets nobody grant what they lack",
			See: []string{bootstrapSource, "OSC/ondemand: hooks/k8s-bootstrap/yaml"},
			Run: rootRights,
		},
		{
			Name: "root-renews", Title: "root may renew its own token", On: steps.Local, From: withRoots, Needs: []string{"root-identity"}, When: rotating,
			Why: "upstream's ClusterRole does not grant it, so the published page's renewal is refused from the first run on, and logins fail once the first token has ended",
			See: []string{page, bootstrapSource, "OSC/ondemand: .github/workflows/tests.yml (makes the token as cluster-admin)"},
			Run: rootRenews,
		},
	}
}

// hookKubeconfigCheck asks whether the hook uses the kubeconfig that these checks
// have proved. It belongs to the step that writes the hook.
func hookKubeconfigCheck() steps.Check {
	return steps.Check{
		Name: "hook-kubeconfig", Title: "the hook uses root's kubeconfig as it was proved", On: steps.Local, Mend: "pre-hook", Needs: []string{"root-kubeconfig"},
		Why: "kubectl takes /root/.kube/config where nothing else is said: on many web nodes that is an admin's",
		See: []string{page, "OSC/osc-ood-config: hooks/pre-hook.sh"},
		Run: func(ctx context.Context, e steps.Env) steps.Result {
			used, err := hooksKubeconfig(ctx, e)
			if err != nil {
				return steps.Unseen(err)
			}
			proved, err := rootsKubeconfig(ctx, e)
			if err != nil {
				return steps.Unseen(err)
			}
			if used.Path != proved.Path {
				return steps.Failed(fmt.Sprintf("it uses %s (%s), not %s", used.Path, used.Why, proved.Path), "")
			}
			return steps.Passed("%s (%s)", used.Path, used.Why)
		},
	}
}

func caFile(ctx context.Context, e steps.Env) steps.Result {
	want, err := e.Peer.Text("cluster-ca")
	if err != nil {
		return steps.Unseen(err)
	}
	at, have, err := rootsCA(ctx, e)
	if errors.Is(err, fs.ErrNotExist) {
		return steps.Failed("there is no "+at, "")
	}
	if err != nil {
		return steps.Unseen(err)
	}
	ours, err := probe.ParseCerts(have)
	if err != nil {
		return steps.Failed(at+": "+err.Error(), "")
	}
	theirs, err := probe.ParseCerts([]byte(want))
	if err != nil {
		return steps.Unseen(fmt.Errorf("the cluster's CA: %w", err))
	}
	for _, c := range theirs {
		if !slices.ContainsFunc(ours, c.Equal) {
			return steps.Failed(at+" is not the CA of the cluster: it holds "+named(ours[0])+", not "+named(c)+" with its key", "")
		}
	}
	if at == clusterCA {
		if r := readableByAll(ctx, e, at); r.Status != steps.Pass {
			return r
		}
	}
	return steps.Passed("%s, until %s", at, ours[0].NotAfter.UTC().Format("2 January 2006"))
}

// rootsCA is the CA that root trusts for the cluster, and where it stands: the
// file that carrick writes, else what root's kubeconfig says.
func rootsCA(ctx context.Context, e steps.Env) (at string, pem []byte, err error) {
	pem, err = e.Host.Read(ctx, clusterCA)
	if !errors.Is(err, fs.ErrNotExist) {
		return clusterCA, pem, err
	}
	in, used, broken := rootsWayIn(ctx, e)
	switch {
	case broken != nil || in.CAFile == clusterCA:
		return clusterCA, nil, err
	case in.CA != nil:
		return used.Path, in.CA, nil
	case in.CAFile != "":
		at = resolved(used.Path, in.CAFile)
		pem, err = e.Host.Read(ctx, at)
		return at, pem, err
	}
	return clusterCA, nil, err
}

// readableByAll asserts that users of the web node may read a file.
func readableByAll(ctx context.Context, e steps.Env, at string) steps.Result {
	info, err := e.Host.Stat(ctx, at)
	if err != nil {
		return steps.Unseen(err)
	}
	if info.Mode.Perm()&0o004 == 0 {
		return steps.Failed(fmt.Sprintf("%s has mode %04o: users may not read it", at, info.Mode.Perm()), onWebNode("chmod 0644 "+steps.Quoted(at)))
	}
	problem, err := passable(ctx, e, at)
	switch {
	case err != nil:
		return steps.Unseen(err)
	case problem != "":
		return steps.Failed(problem, onWebNode("chmod o+x "+steps.Quoted(path.Dir(at))))
	}
	return steps.Passed("%s", at)
}

func named(c *x509.Certificate) string { return fmt.Sprintf("%q", cluster.Clean(c.Subject.CommonName)) }

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

// resolved is a path that a kubeconfig names, which may be relative to its folder.
func resolved(kubeconfig, name string) string {
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
		return steps.Failed("there is no "+used.Path+" ("+used.Why+")", "")
	case errors.As(err, &broken):
		return steps.Failed(broken.Error(), "")
	case err != nil:
		return steps.Unseen(err)
	}
	return steps.Passed("%s (%s)", used.Path, used.Why)
}

func rootKubeconfigPrivate(ctx context.Context, e steps.Env) steps.Result {
	used, err := rootsKubeconfig(ctx, e)
	if err != nil {
		return steps.Unseen(err)
	}
	return onlyRoots(ctx, e, used.Path)
}

func rootKubeconfigStatic(ctx context.Context, e steps.Env) steps.Result {
	in, used, err := rootsWayIn(ctx, e)
	switch {
	case err != nil:
		return steps.Unseen(err)
	case in.Plugin != "":
		return steps.Failed(fmt.Sprintf("%s logs in by %s: that is somebody's own login", used.Path, cluster.Clean(in.Plugin)), "")
	case in.As != "":
		return steps.Failed(fmt.Sprintf("%s acts as %q, by the rights of whoever it logs in as", used.Path, cluster.Clean(in.As)), "")
	case in.TokenFile != "":
		return steps.Passed("%s takes the token from %s", used.Path, resolved(used.Path, in.TokenFile))
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

func rootIdentity(ctx context.Context, e steps.Env) steps.Result {
	in, used, err := rootsWayIn(ctx, e)
	if err != nil {
		return steps.Unseen(err)
	}
	if in.Certificate != nil {
		groups := ""
		if len(in.Certificate.Organization) > 0 {
			groups = " of " + strings.Join(in.Certificate.Organization, ", ")
		}
		return tooPowerful(used, cluster.Clean(in.Certificate.CommonName+groups))
	}
	if in.Plugin != "" {
		return tooPowerful(used, "whoever "+cluster.Clean(in.Plugin)+" logs in as")
	}
	as, _, err := withRoot(ctx, e)
	if broken := (cluster.KubeconfigError{}); errors.As(err, &broken) {
		return steps.Failed(used.Path+": "+broken.Problems[0].Detail, "")
	}
	if errors.Is(err, cluster.ErrProxy) {
		return steps.Skipped("%s goes through a proxy, which carrick does not follow; on the web node: KUBECONFIG=%s kubectl auth whoami", used.Path, steps.Quoted(used.Path))
	}
	if err != nil {
		return steps.Unseen(err)
	}
	who, err := as.WhoAmI(ctx)
	if apierrors.IsUnauthorized(err) {
		return steps.Failed("the API server at "+as.Server()+" refuses the token of "+used.Path+" (401): it has ended, or it is another cluster's, or the ServiceAccount was made anew", again(e, "token"))
	}
	if errors.As(err, new(*tls.CertificateVerificationError)) {
		return steps.Failed(used.Path+": "+cluster.Explain(err), "")
	}
	switch {
	case err != nil:
		return steps.Unseen(err)
	case who.Name != accountUser:
		return tooPowerful(used, who.Name)
	}
	return steps.Passed("as %s, with %s", who.Name, used.Path)
}

func tooPowerful(used inUse, who string) steps.Result {
	return steps.Failed(fmt.Sprintf("%s (%s) acts as %s, not as %s", used.Path, used.Why, who, accountUser), "")
}

// rootUses are the rights of upstream's ClusterRole, each of which the hooks use
// or hand on.
var rootUses = []struct {
	group     string
	resources []string
	verbs     []string
}{
	{"", []string{"namespaces", "serviceaccounts"}, []string{"get", "create", "update", "patch"}},
	{"rbac.authorization.k8s.io", []string{"rolebindings", "roles"}, []string{"get", "create", "update", "patch"}},
	{"", []string{"services", "pods", "configmaps", "secrets", "pods/log"}, []string{"get", "watch", "list", "create", "update", "patch", "delete"}},
	{"networking.k8s.io", []string{"networkpolicies"}, []string{"get", "create", "update", "patch"}},
}

func rootRights(ctx context.Context, e steps.Env) steps.Result {
	as, _, err := withRoot(ctx, e)
	if err != nil {
		return steps.Unseen(err)
	}
	var rights []cluster.Right
	for _, u := range rootUses {
		for _, resource := range u.resources {
			rights = append(rights, check.Verbs(u.group, resource, "", u.verbs...)...)
		}
	}
	decisions, err := as.Can(ctx, rights...)
	if err != nil {
		return steps.Unseen(err)
	}
	lacks := map[string][]string{} // verbs, by resource
	var order []string
	for _, d := range decisions {
		if d.Err != nil {
			return steps.Unseen(fmt.Errorf("may root %s: %w", d.Right, d.Err))
		}
		if d.Allowed {
			continue
		}
		what := strings.TrimPrefix(d.Right.String(), d.Right.Verb+" ")
		if lacks[what] == nil {
			order = append(order, what)
		}
		lacks[what] = append(lacks[what], d.Right.Verb)
	}
	if len(order) == 0 {
		return steps.Passed("all %d rights of upstream's ClusterRole, in every namespace", len(rights))
	}
	var words []string
	for _, what := range order {
		words = append(words, strings.Join(lacks[what], ",")+" "+what)
	}
	return steps.Failed("it may not: "+strings.Join(words, "; "), again(e, "bootstrap"))
}

func rootRenews(ctx context.Context, e steps.Env) steps.Result {
	as, _, err := withRoot(ctx, e)
	if err != nil {
		return steps.Unseen(err)
	}
	right := cluster.Right{Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: namespace, Name: account}
	decisions, err := as.Can(ctx, right)
	switch {
	case err != nil:
		return steps.Unseen(err)
	case !decisions[0].Allowed:
		return steps.Failed("it may not "+right.String(), again(e, "token"))
	}
	return steps.Passed("it may %s", right)
}
