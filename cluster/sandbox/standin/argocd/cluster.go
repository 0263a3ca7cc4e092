package argocd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// cluster is a parsed cluster Secret.
type cluster struct {
	name, server string
	namespaces   []string // nil means all namespaces
	resources    bool     // with namespaces, also manage cluster-scoped resources
	config       rest.Config
	id, version  string // UID and resource version of the Secret
}

// sync is the result of the last sync of a cluster.
type sync struct {
	version string
	at      time.Time
	err     error
}

// clusters parses all cluster Secrets and sorts them by name. It skips Secrets whose config is not JSON.
func (p *Player) clusters(ctx context.Context) (out []cluster, err error) {
	of := metav1.ListOptions{LabelSelector: "argocd.argoproj.io/secret-type=cluster"}
	secrets, err := p.client.CoreV1().Secrets(namespace).List(ctx, of)
	if err != nil {
		return nil, err
	}
	for i := range secrets.Items {
		if c, err := read(&secrets.Items[i]); err == nil {
			out = append(out, c)
		}
	}
	return out, nil
}

func read(s *corev1.Secret) (cluster, error) {
	c := cluster{
		name: string(s.Data["name"]), server: strings.TrimRight(string(s.Data["server"]), "/"),
		resources: string(s.Data["clusterResources"]) == "true", id: string(s.UID), version: s.ResourceVersion,
	}
	for ns := range strings.SplitSeq(string(s.Data["namespaces"]), ",") {
		if ns = strings.TrimSpace(ns); ns != "" {
			c.namespaces = append(c.namespaces, ns)
		}
	}
	var config struct {
		BearerToken     string
		TLSClientConfig struct {
			Insecure                  bool
			ServerName                string
			CAData, CertData, KeyData []byte
		}
	}
	if len(s.Data["config"]) > 0 {
		if err := json.Unmarshal(s.Data["config"], &config); err != nil {
			return c, err
		}
	}
	tls := config.TLSClientConfig
	c.config = rest.Config{
		Host: c.server, BearerToken: config.BearerToken, Timeout: 10 * time.Second, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{
			Insecure: tls.Insecure, ServerName: tls.ServerName, CAData: tls.CAData, CertData: tls.CertData, KeyData: tls.KeyData,
		},
	}
	return c, nil
}

// sync lists the objects of a cluster if its Secret has changed or the last result is too old: 10 seconds after a
// failure (clusterSyncRetryTimeout), 30 seconds after a success.
func (p *Player) sync(ctx context.Context, c cluster) error {
	last, within := p.synced[c.id], 30*time.Second
	if last.err != nil {
		within = 10 * time.Second
	}
	if last.version != c.version || time.Since(last.at) > within {
		last = sync{version: c.version, err: c.list(ctx)}
		last.at = time.Now()
		p.synced[c.id] = last
	}
	return last.err
}

// list requests one object of each kind that supports list and watch. If the Secret specifies namespaces, it lists them
// separately.
func (c cluster) list(ctx context.Context) error {
	discover, err := discovery.NewDiscoveryClientForConfig(&c.config)
	if err != nil {
		return err
	}
	if _, err := discover.ServerVersion(); err != nil {
		return fmt.Errorf("failed to get server version: %w", err)
	}
	kinds, err := discover.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return fmt.Errorf("failed to get api resources: %w", err)
	}
	client, err := dynamic.NewForConfig(&c.config)
	if err != nil {
		return err
	}
	for _, group := range kinds {
		at, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return err
		}
		for _, kind := range group.APIResources {
			if !slices.Contains(kind.Verbs, "list") || !slices.Contains(kind.Verbs, "watch") {
				continue
			}
			for _, in := range c.in(kind.Namespaced) {
				_, err := client.Resource(at.WithResource(kind.Name)).Namespace(in).List(ctx, metav1.ListOptions{Limit: 1})
				if err != nil {
					const said = "failed to sync cluster %s: failed to load initial state of resource %s: %w"
					return fmt.Errorf(said, c.server, schema.GroupKind{Group: at.Group, Kind: kind.Kind}, err)
				}
			}
		}
	}
	return nil
}

// in returns the namespaces to list; "" means all.
func (c cluster) in(namespaced bool) []string {
	switch {
	case len(c.namespaces) == 0 || !namespaced && c.resources:
		return []string{""}
	case namespaced:
		return c.namespaces
	}
	return nil
}
