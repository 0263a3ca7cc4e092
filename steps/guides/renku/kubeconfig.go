package renku

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/masked"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

func config() steps.Step {
	return steps.Step{
		Name: "kubeconfig", Title: "Kubeconfig",
		Map: steps.MapRow{Local: "kubeconfig", Remote: "API address, token", Arrow: steps.Remote},
		Why: "Renku reaches the remote cluster with this kubeconfig. carrick builds it, tests it, and verifies that it " +
			"grants no more permissions than Renku needs.",
		Ask: kubeconfigQuestions(),
		Facts: []steps.Fact{
			{
				Name: "kubeconfig", Title: "the kubeconfig for Renku", On: steps.Remote, Secret: true, Shared: true,
				Learn: theKubeconfig,
			},
			{Name: "kubeconfig-ca", Title: "the CA in the kubeconfig for Renku", On: steps.Remote, Shared: true, Learn: theCA},
		},
		Actions: []steps.Action{{
			Name: "reach-job", Title: "Test the remote API server from inside the local cluster", On: steps.Local,
			When:  asksFromInside,
			Needs: []string{"peer/server-tls"},
			Doer:  reachJob{action.Manifest{File: "reach-job.yaml"}},
		}},
		Checks: append(fileChecks(), credentialChecks()...),
	}
}

func kubeconfigQuestions() []steps.Question {
	return []steps.Question{
		{
			Key: "kubeconfig.file", Title: "Existing kubeconfig file", Kind: steps.Path, Opt: true, On: steps.Remote,
			Help: "To check an existing setup, enter the path of the kubeconfig that Renku uses. If empty, carrick builds a " +
				"kubeconfig.",
		},
		{
			Key: "remote.server", Title: "Remote API server address for Renku", Kind: steps.URL,
			On:    steps.Remote,
			Adopt: adoptGivenServer,
			Help: "An https URL that pods of the local cluster can reach, with a host in the server's certificate, such as " +
				"https://api.example.org:6443.",
			Default: steps.FromFact(check.ServerFact, "from your context"),
			When:    builtHere,
		},
		{
			Key: "kubeconfig.ca", Title: "CA that Renku trusts for the API server", Kind: steps.Pick, On: steps.Remote,
			When:  builtHere,
			Adopt: adoptGivenCA,
			Of: []steps.Choice{
				{Value: "secret", Title: "ca.crt of the token Secret, if the API server itself terminates TLS"},
				{Value: "context", Title: "the CA of your context, if a proxy or load balancer terminates TLS"},
			},
			Help:    "Renku trusts only this CA for the API server, not the system roots.",
			Default: steps.Fixed("secret", "the published guide"),
		},
		{
			Key: "reach.job", Title: "Connection test from inside the local cluster", Kind: steps.YesNo,
			Help: "Runs a small Job in Renku's namespace that requests the remote API server's version. Pods may be unable " +
				"to reach an address that this machine reaches.",
			Default: steps.Fixed(false, "the default"),
		},
		{
			Key: "reach.image", Title: "Image of the test Job", Kind: steps.Text, NotFromPeer: true, When: asksFromInside,
			Help:    "An image that contains kubectl.",
			Default: steps.Fixed("registry.k8s.io/kubectl:v1.33.0", "the upstream image"),
		},
	}
}

const kubeconfigFact = "kubeconfig"

func builtHere(e steps.Env) bool      { return e.Answers.Text("kubeconfig.file") == "" }
func asksFromInside(e steps.Env) bool { return e.Answers.Bool("reach.job") }

// theKubeconfig returns the content of kubeconfig.file. If kubeconfig.file is empty, it builds a
// kubeconfig from the token Secret.
func theKubeconfig(ctx context.Context, e steps.Env) (any, error) {
	if path := e.Answers.Text("kubeconfig.file"); path != "" {
		return tracked.Look(ctx, "file/"+path, 5*time.Second, func(context.Context) (masked.Value, error) {
			b, err := readSmall(path)
			if err != nil {
				return masked.Value{}, fmt.Errorf("reading the kubeconfig: %w", err)
			}
			return masked.New(string(b)), nil
		})
	}
	s, err := filledSecret(ctx, e)
	if err != nil {
		return nil, err
	}
	ca, err := e.Own.Text("kubeconfig-ca")
	if err != nil {
		return nil, err
	}
	k := kubeconfig.Config{
		Name: e.Link, Server: e.Answers.Text("remote.server"), CA: []byte(ca),
		Namespace: s.Data["namespace"].Reveal(), Token: s.Data["token"],
	}
	return k.Bytes(), nil
}

func theCA(ctx context.Context, e steps.Env) (any, error) {
	if e.Answers.Text("kubeconfig.file") != "" {
		k, err := check.Kubeconfig(e, kubeconfigFact)
		return string(k.CA), err
	}
	if e.Answers.Text("kubeconfig.ca") == "context" {
		const none = "your context names no CA and trusts the system roots, but Renku does not trust them"
		return check.ContextCA(none)(ctx, e)
	}
	s, err := filledSecret(ctx, e)
	if err != nil {
		return nil, err
	}
	return s.Data["ca.crt"].Reveal(), nil
}

func filledSecret(ctx context.Context, e steps.Env) (*cluster.Secret, error) {
	name := e.Answers.Text("identity.token-secret")
	s, err := e.Cluster.Secret(ctx, sessionsNamespace(e), name, "token", "ca.crt", "namespace")
	if apierrors.IsNotFound(err) {
		return nil, steps.Absent("token Secret %s does not exist yet", name)
	}
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"token", "ca.crt", "namespace"} {
		if s.Data[key].IsZero() {
			return nil, steps.Absent("token Secret %s has no %s yet", name, key)
		}
	}
	return s, nil
}

// breaks returns the kubeconfig's violations of the given rules. It returns an error if the
// kubeconfig does not exist yet or cannot be read.
func breaks(e steps.Env, rules ...string) ([]kubeconfig.Problem, error) {
	_, err := check.Kubeconfig(e, kubeconfigFact)
	var broken kubeconfig.Error
	if !errors.As(err, &broken) {
		return nil, err
	}
	var out []kubeconfig.Problem
	for _, p := range broken.Problems {
		for _, r := range rules {
			if p.Rule == r {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

func withKubeconfig(e steps.Env) (*cluster.Cluster, error) {
	if builtHere(e) {
		e.Cluster.Ahead(e.Answers.Text("remote.server"))
	}
	return check.WithKubeconfig(e, kubeconfigFact)
}

// readSmall reads a regular file of at most 1 MiB. It rejects all other files, because the path can
// come from another user's link file.
func readSmall(path string) ([]byte, error) {
	const most = 1 << 20
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > most:
		return nil, fmt.Errorf("%s is larger than 1 MiB", path)
	}
	return os.ReadFile(path)
}
