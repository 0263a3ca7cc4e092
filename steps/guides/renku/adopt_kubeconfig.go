package renku

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/bearer"
	"carrick/cluster/masked"
	"carrick/steps"
	"carrick/steps/check"
)

func givenFacts() []steps.Fact {
	return []steps.Fact{
		{
			Name: "handed-over", Title: "the kubeconfig that Renku has for the remote cluster", On: steps.Local,
			Learn: learnHanded,
		},
		{
			Name: "handed-token", Title: "the token in Renku's kubeconfig for the remote cluster", On: steps.Local, Secret: true,
			Learn: handedToken,
		},
		{
			Name: "context-ca", Title: "the CA of your context", On: steps.Remote,
			Learn: check.ContextCA("your context names no CA"),
		},
	}
}

// readLoose parses a kubeconfig leniently. The map contains "server", "ca" and "namespace". It also
// contains "account" and "account-namespace" for the ServiceAccount, and "with" for a description
// of the credentials. The token is a separate result, because it is secret. The map is nil if the
// kubeconfig cannot be parsed.
func readLoose(m masked.Value) (map[string]string, masked.Value) {
	text := m.Reveal()
	if len(text) > 1<<20 {
		return nil, masked.Value{}
	}
	l, err := check.ReadLoosely([]byte(text))
	if err != nil || len(l.Contexts) == 0 {
		return nil, masked.Value{}
	}
	c, found := l.Context(l.Current)
	if !found {
		c = l.Contexts[0].Context
	}
	out := map[string]string{"with": "unknown credentials", "namespace": c.Namespace}
	if k, found := l.Cluster(c.Cluster); found {
		if ca, err := base64.StdEncoding.DecodeString(k.CAData); err == nil {
			out["server"], out["ca"] = k.Server, string(ca)
		}
	}
	token := masked.Value{}
	switch u := l.User(c.User); {
	case u.Token != "":
		token, out["with"] = masked.New(u.Token), "a token of an unknown user"
		if t, err := bearer.Parse(token); err == nil {
			out["account-namespace"], out["account"], _ = t.ServiceAccount()
		}
	case u.Cert != "":
		out["with"] = "a client certificate"
	}
	return out, token
}

// pointsTo reports whether k has the given server address or the given CA. k is a map from
// readLoose.
func pointsTo(k map[string]string, server, ca string) bool {
	return sameServer(k["server"], server) || check.SamePEM(k["ca"], ca)
}

func sameServer(a, b string) bool {
	x, y := serverHostPort(a), serverHostPort(b)
	return x != "" && x == y
}

func serverHostPort(server string) string {
	u, err := url.Parse(server)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	return strings.ToLower(check.HostPort(u))
}

// handedKubeconfig returns the kubeconfig in Renku's Secret that points to the remote cluster, and
// its token. The map has the entries that readLoose returns, and "key", the kubeconfig's key in the
// Secret.
func handedKubeconfig(ctx context.Context, e steps.Env) (map[string]string, masked.Value, error) {
	none := masked.Value{}
	ns, name := secretWhere(e)
	s, err := e.Cluster.Secret(ctx, ns, name, cluster.EveryKey)
	if apierrors.IsNotFound(err) {
		return nil, none, steps.Absent("Secret %s/%s does not exist", ns, name)
	}
	if err != nil {
		return nil, none, err
	}
	server, _ := e.Peer.Text("api-server")
	ca, _ := e.Peer.Text("context-ca")
	found, tokens := map[string]map[string]string{}, map[string]masked.Value{}
	for key, value := range s.Data {
		if k, token := readLoose(value); pointsTo(k, server, ca) {
			k["key"] = key
			found[key], tokens[key] = k, token
		}
	}
	keys := slices.Sorted(maps.Keys(found))
	switch answered := e.Answers.Text("cluster.config-name"); {
	case found[answered] != nil:
		return found[answered], tokens[answered], nil
	case len(keys) == 1:
		return found[keys[0]], tokens[keys[0]], nil
	case len(keys) > 1:
		return nil, none, fmt.Errorf(
			"the keys %s of Secret %s/%s all point to the remote cluster: set cluster.config-name to the correct key",
			strings.Join(keys, ", "), ns, name,
		)
	}
	return nil, none, steps.Absent(
		"none of the %d keys of Secret %s/%s points to the remote cluster", len(s.Data), ns, name,
	)
}

func learnHanded(ctx context.Context, e steps.Env) (any, error) {
	k, _, err := handedKubeconfig(ctx, e)
	if err != nil {
		return nil, err
	}
	return k, nil
}

func handedToken(ctx context.Context, e steps.Env) (any, error) {
	_, token, err := handedKubeconfig(ctx, e)
	if err != nil {
		return nil, err
	}
	if token.IsZero() {
		return nil, steps.Absent("Renku's kubeconfig for the remote cluster has no token")
	}
	return token, nil
}

// handedFact returns the local cluster's fact handed-over. It can be called on either side.
func handedFact(e steps.Env) (map[string]string, error) {
	v, err := localFacts(e).Value("handed-over")
	if err != nil {
		return nil, err
	}
	k, ok := v.(map[string]string)
	if !ok {
		return nil, errors.New("the kubeconfig that Renku has for the remote cluster cannot be read")
	}
	return k, nil
}
