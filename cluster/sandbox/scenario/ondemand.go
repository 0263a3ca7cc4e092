package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"carrick/cluster/sandbox/pki"
	"carrick/cluster/sandbox/standin"
	"carrick/cluster/sandbox/standin/charts"
	"carrick/cluster/sandbox/standin/oidc"
	"carrick/cluster/sandbox/standin/webnode"
	"carrick/cluster/sandbox/world"
)

// issuerWithin is the timeout for the API server to load a new issuer.
const issuerWithin = 5 * time.Minute

// issuer is the portal's identity provider, and the CA that signs the certificates of the provider and of the
// registry.
type issuer struct {
	authority *pki.Authority
	provider  *oidc.Provider
	spoilt    bool // changed by a fault, so the next run of the scenario must not reuse it
}

// portal is the running scenario ondemand. It consists of a directory that represents the web node, an identity
// provider that the remote API server trusts, a registry and a fake Prometheus.
type portal struct {
	*issuer
	side     *Side // the remote cluster
	registry *standin.Registry
	node     *webnode.Node
	empty    atomic.Bool // Prometheus returns no containers
	prefixed bool        // the API server prefixes user names with the issuer
}

func ondemand(ctx context.Context, s *Stage) (_ *Play, err error) {
	var all closers
	defer func() {
		if err != nil {
			all.close()
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	all = append(all, cancel)
	repository, err := charts.StartOf(ctx, charts.OnDemand)
	if err != nil {
		return nil, err
	}
	all = append(all, repository.Close)
	p := &portal{side: s.sides[remote]}
	if p.issuer, err = s.portalIssuer(); err != nil {
		return nil, err
	}
	if p.registry, err = standin.StartRegistry(ctx, p.authority); err != nil {
		return nil, err
	}
	all = append(all, p.registry.Close)
	monitored, err := p.monitoring(ctx, &all)
	if err != nil {
		return nil, err
	}
	if p.node, err = webnode.Start(ctx, webnode.Options{Dir: s.dir, Values: map[string]string{
		"issuer": p.provider.Issuer, "client": oidc.Client, "secret": oidc.ClientSecret, "ca": string(p.authority.Cert),
	}}); err != nil {
		return nil, err
	}
	all = append(all, p.node.Close)
	if err := p.trust(); err != nil {
		return nil, err
	}
	return &Play{
		Values:  world.Values{"oidc.issuer": p.provider.Issuer, "oidc.audience": oidc.Audience, "server": p.side.Config.Host},
		Charts:  repository,
		Objects: map[string][]*unstructured.Unstructured{remote: monitored},
		Settle:  p.settle,
		Acts:    p.acts(),
		Close:   all.close,
		Hosts:   map[string]string{local: p.node.Root},
		Answers: map[string]string{
			"walltime.enabled": "true", "walltime.source": repository.URL,
			"registry.enabled": "true", "registry.host": p.registry.Host, "registry.password": standin.RegistryPassword,
			"registry.user":      standin.RegistryUser,
			"registry.ca":        "/etc/pki/tls/certs/ca-bundle.crt",
			"oidc.client-secret": oidc.ClientSecret, "hooks.allow-cidr": "172.30.0.0/16",
			"trial.user": webnode.Users[0], "trial.other": webnode.Users[1],
			"idle.enabled": "true", "idle.source": repository.URL,
		},
		Given: []string{"walltime.source", "idle.source"},
	}, nil
}

// portalIssuer returns the issuer from the previous run of the scenario. It creates a new one if there is none, or if a
// fault has changed it.
func (s *Stage) portalIssuer() (*issuer, error) {
	if s.issuer != nil && !s.issuer.spoilt {
		return s.issuer, nil
	}
	if s.issuer != nil {
		s.issuer.provider.Close()
	}
	authority, err := pki.NewAuthority("stand-in of the portal's authority")
	if err != nil {
		return nil, err
	}
	provider, err := oidc.StartWith(s.life, oidc.Options{Users: append([]string{"c.diaz"}, webnode.Users...)}, authority)
	if err != nil {
		return nil, err
	}
	s.issuer = &issuer{authority: authority, provider: provider}
	return s.issuer, nil
}

// monitoring starts a fake Prometheus and returns its objects. The Prometheus reports the number of containers, or
// nothing if p.empty is set. monitoring returns no objects if this machine has only loopback addresses.
func (p *portal) monitoring(ctx context.Context, all *closers) ([]*unstructured.Unstructured, error) {
	client, err := kubernetes.NewForConfig(p.side.Config)
	if err != nil {
		return nil, err
	}
	count := func() (map[string]int, error) {
		n := map[string]int{}
		if p.empty.Load() {
			return n, nil
		}
		pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		if err == nil {
			for _, pod := range pods.Items {
				n[pod.Namespace] += len(pod.Spec.Containers)
			}
		}
		return n, err
	}
	prometheus, err := standin.StartPrometheus(count)
	if errors.Is(err, standin.ErrNoAddress) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	*all = append(*all, prometheus.Close)
	return prometheus.Objects(), nil
}

// trust adds the provider to the API server's authentication configuration. The API server reloads the file
// automatically.
func (p *portal) trust() error {
	username := map[string]any{"claim": "preferred_username", "prefix": ""}
	if p.prefixed {
		username["prefix"] = p.provider.Issuer + "#"
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1beta1", "kind": "AuthenticationConfiguration",
		"jwt": []any{map[string]any{
			"issuer": map[string]any{
				"url": p.provider.Issuer, "audiences": []string{oidc.Audience}, "certificateAuthority": string(p.authority.Cert),
			},
			"claimMappings": map[string]any{"username": username},
		}},
	})
	if err != nil {
		return err
	}
	// Rename, so that the API server never reads a partial file.
	part := p.side.Authentication + ".new"
	if err := os.WriteFile(part, data, 0o600); err != nil {
		return err
	}
	return os.Rename(part, p.side.Authentication)
}

// settle waits until the API server trusts the provider, and then logs in the users. With some faults the login fails.
func (p *portal) settle(ctx context.Context) error {
	if err := p.known(ctx); err != nil {
		return err
	}
	_ = p.node.Look(ctx) // a failed login is only logged to the node's syslog
	return nil
}

// known waits until the API server accepts the provider's tokens.
func (p *portal) known(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, issuerWithin)
	defer cancel()
	token, err := p.provider.Sign(webnode.Users[0], time.Now(), oidc.Audience)
	if err != nil {
		return err
	}
	config := rest.AnonymousClientConfig(p.side.Config)
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return world.Until(ctx, "the API server to accept tokens of the stand-in's issuer", func() (bool, error) {
		review, err := client.AuthenticationV1().SelfSubjectReviews().Create(
			ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{},
		)
		if err != nil {
			return false, err
		}
		want := webnode.Users[0]
		if p.prefixed {
			want = p.provider.Issuer + "#" + want
		}
		got := review.Status.UserInfo.Username
		return got == want, fmt.Errorf("the token's user is %s, not %q", want, got)
	})
}
