package engine

import (
	"context"
	"fmt"
	"time"

	"carrick/cluster"
	"carrick/cluster/failure"
	"carrick/cluster/kubeconfig"
)

// Candidate is a context that a side could be.
type Candidate struct {
	Context, Server, Namespace string
	Current                    bool
}

// Candidates are the contexts of a kubeconfig ("": by kubectl's rules).
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

// Preflight is what a side says of itself when it is first asked.
type Preflight struct {
	Version string // "v1.36.3"
	User    string
	UID     string // of kube-system: two sides with one UID are one cluster; "" where it may not be read
	Latency time.Duration
}

// Meet asks a cluster who it is. The error is in plain words.
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
