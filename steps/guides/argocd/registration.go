package argocd

import (
	"context"
	"encoding/json"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"carrick/cluster"
	"carrick/cluster/masked"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

const secretType = "argocd.argoproj.io/secret-type"

func registration() steps.Step {
	return steps.Step{
		Name: "registration", Title: "Registration",
		Map: steps.MapRow{Local: "cluster Secret", Remote: "API address", Arrow: steps.Remote},
		Why: "Argo CD finds a cluster through a Secret in its own namespace that has the label " + secretType + "=cluster.",
		Ask: []steps.Question{{
			Key: "cluster.name", Title: "Name of the cluster in Argo CD", Kind: steps.Text,
			Help:    "Applications can refer to the cluster by this name in spec.destination.name.",
			Default: func(e steps.Env) (any, string) { return e.Link, "from the link's name" },
		}},
		Actions: []steps.Action{{
			Name: "cluster-secret", Title: "Create the cluster Secret for Argo CD", On: steps.Local,
			Needs: []string{"controller", "peer/permissions", "peer/least-privilege"},
			Doer: action.Manifest{File: "cluster-secret.yaml", Values: action.Values{
				"config":     func(_ context.Context, e steps.Env) (any, error) { return config(e) },
				"namespaces": func(_ context.Context, e steps.Env) (any, error) { return strings.Join(deploysTo(e), ","), nil },
			}},
		}},
		Checks: []steps.Check{
			{
				Name: "cluster-secret", Title: "The cluster Secret has the address and the credential", On: steps.Local,
				FixedBy: "cluster-secret",
				Why: "Argo CD ignores a Secret without the label. If the key config is not valid JSON, Argo CD only " +
					"logs an error.",
				Needs: []string{"signed-in", "peer/token-secret"}, Run: clusterSecret,
				References: []string{"argoproj/argo-cd: util/db/cluster.go (SecretToCluster)"},
			},
			{
				Name: "one-secret", Title: "No other cluster Secret has the same address or name", On: steps.Local,
				Needs: []string{"signed-in"},
				Why: "If two Secrets have the same address, Argo CD uses either of them. A duplicate name causes an error " +
					"in Applications.",
				References: []string{"argoproj/argo-cd: util/settings/cluster_informer.go (GetClusterByURL)"}, Run: oneSecret,
			},
			{
				Name: "egress", Title: "NetworkPolicies allow egress to the destination", On: steps.Local,
				Needs: []string{"controller"},
				Why:   "An egress policy for Argo CD's pods denies every connection that the policy does not allow.", Run: egress,
			},
		},
	}
}

func secretName(e steps.Env) string { return "cluster-" + e.Link }

// config returns the value of the cluster Secret's key "config". The value has exactly the format that Argo CD itself
// writes, so that neither carrick nor Argo CD detects a difference (argoproj/argo-cd:
// pkg/apis/application/v1alpha1/types.go, ClusterConfig).
func config(e steps.Env) (masked.Value, error) {
	k, err := check.Kubeconfig(steps.Env{Own: e.Peer}, "credential")
	if err != nil {
		return masked.Value{}, err
	}
	var c struct {
		BearerToken string `json:"bearerToken"`
		TLS         struct {
			Insecure bool   `json:"insecure"`
			CAData   []byte `json:"caData,omitempty"`
		} `json:"tlsClientConfig"`
	}
	c.BearerToken, c.TLS.CAData = k.Token.Reveal(), k.CA
	text, err := json.Marshal(c)
	return masked.New(string(text)), err
}

func clusterSecret(ctx context.Context, e steps.Env) steps.Result {
	name := "Secret " + argoNamespace(e) + "/" + secretName(e)
	s, err := e.Cluster.Secret(ctx, argoNamespace(e), secretName(e), "server", "config", "namespaces")
	if err != nil {
		return check.Missing(err, name, "")
	}
	want, err := config(e)
	switch {
	case err != nil:
		return steps.Errored(err)
	case s.Labels[secretType] != "cluster":
		return steps.Failed(name+" does not have the label "+secretType+"=cluster", "")
	case strings.TrimRight(s.Data["server"].Reveal(), "/") != server(e):
		return steps.Failed(name+" has an address other than "+server(e), "")
	case s.Data["config"] != want:
		return steps.Failed(name+" has a token or CA other than the destination's", "")
	case s.Data["namespaces"].Reveal() != strings.Join(deploysTo(e), ","):
		return steps.Failed(name+" has namespaces other than access.namespaces", "")
	}
	return steps.Passed("%s has the address and the credential of %s", name, server(e))
}

func oneSecret(ctx context.Context, e steps.Env) steps.Result {
	of := cluster.Selector{Labels: secretType + "=cluster"}
	all, err := e.Cluster.Secrets(ctx, argoNamespace(e), of, "server", "name")
	if err != nil {
		return steps.Errored(err)
	}
	for _, s := range all {
		same := strings.TrimRight(s.Data["server"].Reveal(), "/") == server(e) ||
			s.Data["name"].Reveal() == e.Answers.Text("cluster.name")
		if same && s.Name != secretName(e) {
			return steps.Failed("Secret "+s.Namespace+"/"+s.Name+" has the same address or name",
				e.Kubectl()+" -n "+s.Namespace+" delete secret "+steps.Quoted(s.Name)+"    # if this link replaces that Secret")
		}
	}
	return steps.Passed("no duplicate among %d cluster Secrets", len(all))
}

func egress(ctx context.Context, e steps.Env) steps.Result {
	all, err := controllers(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	u, err := url.Parse(server(e))
	if err != nil {
		return steps.Errored(err)
	}
	var at []string // nil for a DNS name: its addresses are unknown, so any ipBlock matches
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		at = []string{u.Hostname()}
	}
	port, _ := strconv.Atoi(strings.TrimPrefix(check.HostPort(u), u.Hostname()+":"))
	for _, c := range all {
		by, err := check.EgressDeniedBy(ctx, e.Cluster, c.Namespace, c.Spec.Template.Labels, at, int32(port))
		if err != nil {
			return steps.Errored(err)
		} else if len(by) > 0 {
			return steps.Failed("NetworkPolicy "+check.Some(by)+" denies pods of "+c.Name+" connections to "+u.Host,
				e.Kubectl()+" -n "+c.Namespace+" get networkpolicies -o yaml    # allow that address and port")
		}
	}
	return steps.Passed("no NetworkPolicy denies %s", u.Host)
}
