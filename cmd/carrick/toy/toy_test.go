package toy

import (
	"context"
	"os"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/masked"
	"carrick/cmd/carrick/carricktest"
	"carrick/cmd/carrick/commands"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	"carrick/steps/engine"
)

// toyMain runs carrick with the toy guide only. It grants API servers on a busy machine more time than the default.
func toyMain() {
	os.Args = slices.Insert(os.Args, 1, "--request-timeout=1m", "--remote-request-timeout=1m")
	carricktest.RunProgram(commands.Program{Guides: []*steps.Guide{toy()}, Assets: toyAssets})
}

// toyAssets has the manifests of the toy guide. Two links share the namespace and its ServiceAccount.
var toyAssets = fstest.MapFS{
	"toy/namespace.yaml": {Data: []byte(`apiVersion: v1
kind: Namespace
metadata:
  name: ${answers.account.namespace}
  labels: {app.kubernetes.io/part-of: toy}
  annotations: {toy/hub: "${peer.cluster-uid}"}
`)},
	"toy/account.yaml": {Data: []byte(`apiVersion: v1
kind: ServiceAccount
metadata: {name: hub, namespace: "${answers.account.namespace}"}
---
apiVersion: v1
kind: Secret
metadata:
  name: hub-token
  namespace: ${answers.account.namespace}
  annotations: {kubernetes.io/service-account.name: hub}
type: kubernetes.io/service-account-token
`)},
	"toy/server.yaml": {Data: []byte(`apiVersion: v1
kind: ConfigMap
metadata: {name: "toy-${link.name}", namespace: default}
data: {server: "${answers.register.server}"}
`)},
	"toy/token.yaml": {Data: []byte(`apiVersion: v1
kind: Secret
metadata: {name: "toy-${link.name}", namespace: default}
stringData: {token: "${peer.token}"}
`)},
}

// toy returns the smallest guide between two clusters that has all features of the front ends: shared facts in both
// directions, one of them secret; a question whose default is discovered, a question that adopt answers, and a question
// that enables a waiting check; actions on both sides; a check that needs the other side; a row that is not checked. It
// can be applied in a second.
func toy() *steps.Guide {
	return &steps.Guide{
		Name: "toy", Title: "Toy", Page: "https://example.org/toy",
		About: "Gives a hub cluster an account on a spoke cluster.",
		Sides: map[steps.Side]steps.Role{
			steps.Local:  {Name: "hub", Kind: steps.Cluster},
			steps.Remote: {Name: "spoke", Kind: steps.Cluster},
		},
		Steps: []steps.Step{toyClusters(), toyAccount(), toyRegister()},
	}
}

func toyClusters() steps.Step {
	return steps.Step{
		Name: "clusters", Title: "Clusters", Why: "The hub and the spoke are two clusters that answer.",
		Facts: check.Identity(),
		Checks: []steps.Check{check.Reachable(), check.SignedIn(), check.NotTheSame(), {
			Name: "may-create", Title: "You have the permissions this guide needs", On: steps.Remote, Permissions: true,
			Why: "A missing permission leaves half an account.", Needs: []string{"signed-in"}, Run: toyPermissions,
		}},
	}
}

func toyAccount() steps.Step {
	return steps.Step{
		Name: "account", Title: "Account", Why: "The hub acts on the spoke as one ServiceAccount.",
		Ask: []steps.Question{{
			Key: "account.namespace", Title: "Namespace of the account", Kind: steps.Namespace, On: steps.Remote,
			Help: "carrick creates it if it does not exist.", Adopt: toyNamespace,
			Default: steps.Fixed("toy", "the guide"),
		}, {
			Key: "account.approval", Title: "Wait for approval", Kind: steps.YesNo, On: steps.Remote,
			Help:    "An admin approves the ServiceAccount with the annotation toy/approved=yes.",
			Default: steps.Fixed(false, "the guide"),
		}},
		Facts: []steps.Fact{
			{
				Name: "token", Title: "the account's token", On: steps.Remote, Shared: true, Secret: true,
				Learn: toyToken,
			},
		},
		Actions: []steps.Action{{
			Name: "namespace", Title: "Create the namespace", On: steps.Remote, Needs: []string{"signed-in"},
			Doer: action.Manifest{File: "namespace.yaml"},
		}, {
			Name: "account", Title: "Create the ServiceAccount and its token", On: steps.Remote,
			Needs: []string{"namespace"}, Doer: action.Manifest{File: "account.yaml"},
		}},
		Checks: []steps.Check{{
			Name: "namespace", Title: "The namespace exists", On: steps.Remote, FixedBy: "namespace",
			Why: "The account belongs to it.", Needs: []string{"signed-in"},
			Run: func(ctx context.Context, e steps.Env) steps.Result {
				name := e.Answers.Text("account.namespace")
				return check.Exists(ctx, e.Cluster, check.Namespaces, "", name, "Namespace "+name, "")
			},
		}, {
			Name: "token", Title: "The token Secret is filled", On: steps.Remote, FixedBy: "account", Timeout: slow,
			Why: "The hub signs in with it.", Needs: []string{"namespace"}, Run: toyTokenFilled,
		}, {
			Name: "approved", Title: "The ServiceAccount is approved", On: steps.Remote, FixedBy: "account", Timeout: slow,
			Why: "The spoke's admin wants to know the hub.", Needs: []string{"namespace"}, Run: toyApproved,
			When: func(e steps.Env) bool { return e.Answers.Bool("account.approval") },
		}},
	}
}

func toyRegister() steps.Step {
	return steps.Step{
		Name: "register", Title: "Register", Why: "The hub keeps the spoke's address and token.",
		Ask: []steps.Question{{
			Key: "register.server", Title: "Address of the spoke", Kind: steps.URL, On: steps.Remote,
			Help:    "The URL at which the hub reaches the spoke's API server, such as https://spoke.example.org:6443.",
			Default: steps.FromFact(check.ServerFact, "the spoke's context"),
		}},
		Actions: []steps.Action{{
			Name: "server", Title: "Write the spoke's address", On: steps.Local, Needs: []string{"peer/namespace"},
			Doer: action.Manifest{File: "server.yaml"},
		}, {
			Name: "register", Title: "Copy the token", On: steps.Local, Needs: []string{"peer/token"},
			Doer: action.Manifest{File: "token.yaml"},
		}},
		Checks: []steps.Check{{
			Name: "server", Title: "The hub has the spoke's address", On: steps.Local, FixedBy: "server",
			Why: "The hub connects to it.", Needs: []string{"signed-in"}, Run: toyServer,
		}, {
			Name: "registered", Title: "The hub has the spoke's token", On: steps.Local, FixedBy: "register",
			Why: "The spoke refuses any other.", Needs: []string{"signed-in", "peer/token"}, Run: toyRegistered,
		}, {
			Name: "used", Title: "The hub uses the token", On: steps.Local, Why: "It is there for that.",
			NotChecked: "the hub runs nothing that uses it",
		}},
	}
}

// slow is the timeout of a waiting check of the toy guide.
const slow = 10 * time.Minute

func toyPermissions(ctx context.Context, e steps.Env) steps.Result {
	ns := e.Answers.Text("account.namespace")
	rights := slices.Concat(
		check.Verbs("", "namespaces", "", "get", "create", "patch"),
		check.Verbs("", "serviceaccounts", ns, "get", "create", "patch"),
		check.Verbs("", "secrets", ns, "get", "create", "patch"),
	)
	return check.MayI(ctx, e.Cluster, rights, steps.Grant("carrick-"+e.Link, rights, ns))
}

// toyNamespace discovers the namespace of an existing account.
func toyNamespace(ctx context.Context, e steps.Env) (any, string, error) {
	found, err := e.Cluster.List(ctx, check.Namespaces, "", cluster.Selector{Labels: "app.kubernetes.io/part-of=toy"})
	if err != nil || len(found) == 0 {
		return nil, "", err
	}
	return found[0].GetName(), "its label", nil
}

// toySecret reads the token in a Secret. The value is zero if there is none.
func toySecret(ctx context.Context, e steps.Env, ns, name string) (token masked.Value, made time.Time, err error) {
	s, err := e.Cluster.Secret(ctx, ns, name, "token")
	if err != nil {
		return token, made, err
	}
	return s.Data["token"], s.Created, nil
}

func toyToken(ctx context.Context, e steps.Env) (any, error) {
	token, _, err := toySecret(ctx, e, e.Answers.Text("account.namespace"), "hub-token")
	if apierrors.IsNotFound(err) || err == nil && token.IsZero() {
		return nil, steps.Absent("the account has no token yet")
	}
	return token, err
}

func toyTokenFilled(ctx context.Context, e steps.Env) steps.Result {
	ns := e.Answers.Text("account.namespace")
	token, made, err := toySecret(ctx, e, ns, "hub-token")
	if err != nil {
		return check.Missing(err, "Secret "+ns+"/hub-token", "")
	}
	if token.IsZero() {
		return steps.Waits(made, "Secret %s/hub-token has no token yet", ns)
	}
	return steps.Passed("Secret %s/hub-token", ns)
}

func toyApproved(ctx context.Context, e steps.Env) steps.Result {
	ns := e.Answers.Text("account.namespace")
	account, err := check.Get[corev1.ServiceAccount](ctx, e.Cluster, check.ServiceAccounts, ns, "hub")
	if err != nil {
		return check.Missing(err, "ServiceAccount "+ns+"/hub", "")
	}
	if account.Annotations["toy/approved"] != "yes" {
		return steps.Waits(account.CreationTimestamp.Time, "ServiceAccount %s/hub is not approved yet", ns)
	}
	return steps.Passed("ServiceAccount %s/hub", ns)
}

func toyServer(ctx context.Context, e steps.Env) steps.Result {
	name, want := "toy-"+e.Link, e.Answers.Text("register.server")
	m, err := check.Get[corev1.ConfigMap](ctx, e.Cluster, check.ConfigMaps, "default", name)
	if err != nil {
		return check.Missing(err, "ConfigMap default/"+name, "")
	}
	if got := m.Data["server"]; got != want {
		return steps.Failed("ConfigMap default/"+name+" has "+got+", not "+want, "")
	}
	return steps.Passed("%s", want)
}

func toyRegistered(ctx context.Context, e steps.Env) steps.Result {
	token, err := e.Peer.Masked("token")
	if err != nil {
		return steps.Errored(err)
	}
	got, _, err := toySecret(ctx, e, "default", "toy-"+e.Link)
	if err != nil {
		return check.Missing(err, "Secret default/toy-"+e.Link, "")
	}
	if got != token {
		return steps.Failed("Secret default/toy-"+e.Link+" has another token", "")
	}
	return steps.Passed("Secret default/toy-%s", e.Link)
}

func TestTheToyGuideIsValid(t *testing.T) {
	if err := engine.Validate([]*steps.Guide{toy()}, toyAssets); err != nil {
		t.Fatal(err)
	}
}
