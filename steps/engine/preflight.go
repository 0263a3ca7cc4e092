package engine

import (
	"context"
	"fmt"
	"time"

	"carrick/cluster"
	"carrick/cluster/failure"
	"carrick/cluster/kubeconfig"
)

// Candidate is a context that can be chosen for a side.
type Candidate struct {
	Context, Server, Namespace string
	Current                    bool
}

// Candidates returns the contexts of the kubeconfig at path config. If config is "", kubectl's rules apply.
func Candidates(config string) ([]Candidate, error) {
	list, err := kubeconfig.Contexts(config)
	if err != nil {
		return nil, err
	}
	var out []Candidate
	for _, c := range list {
		out = append(out, Candidate{c.Name, c.Server, c.Namespace, c.Current})
	}
	return out, nil
}

// Preflight is the result of the first request to a cluster.
type Preflight struct {
	Version string // such as "v1.36.3"
	User    string
	UID     string // UID of kube-system; two sides with the same UID are the same cluster; "" if it can't be read
	Latency time.Duration
}

// RunPreflight contacts a cluster for the first time. Its errors are in plain words.
func RunPreflight(ctx context.Context, access kubeconfig.Access) (Preflight, error) {
	c, err := cluster.Open(access, cluster.Options{Once: true})
	if err != nil {
		return Preflight{}, err
	}
	defer c.Close()
	v, err := c.Version(ctx)
	if err != nil {
		return Preflight{}, fmt.Errorf("%s", failure.Explain(err))
	}
	m := Preflight{Version: v.Git, Latency: v.Latency}
	if who, err := c.WhoAmI(ctx); err == nil {
		m.User = who.Name
	}
	if uid, err := c.UID(ctx); err == nil {
		m.UID = uid
	}
	return m, nil
}
