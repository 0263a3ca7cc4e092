package engine

import (
	"fmt"
	"path/filepath"

	"carrick/cluster"
	"carrick/cluster/host"
	"carrick/cluster/kubeconfig"
	"carrick/steps"
	"carrick/steps/facts"
	"carrick/steps/linkfile"
)

// Endpoint is the cluster, host or peer file of one side. If all three are nil, the checks of that side are skipped.
type Endpoint struct {
	Cluster  *cluster.Cluster
	Host     *host.Host
	PeerFile *PeerFile // the facts file that the side's admin provided
	Name     string    // the name that the user sees, such as the context or the host
	Config   string    // path of the kubeconfig that the link or a flag names; if "", kubectl's rules apply
	Absent   string    // why there is neither a cluster nor a host
}

func (e Endpoint) absent() bool { return e.Cluster == nil && e.Host == nil }

// Close closes the side's connections and files.
func (e Endpoint) Close() {
	if e.Cluster != nil {
		e.Cluster.Close()
	}
	if e.Host != nil {
		e.Host.Close()
	}
	if e.PeerFile != nil {
		e.PeerFile.Close()
	}
}

// OpenEndpoint opens a side as the link file describes it. It sends no request to a cluster. It returns errors about
// kubeconfigs, contexts, directories and facts files.
func OpenEndpoint(
	l *linkfile.Link, side steps.Side, g *steps.Guide, access kubeconfig.Access, keys facts.Keys, o cluster.Options,
) (Endpoint, error) {
	role := g.Sides[side]
	spec := l.Side(side)
	switch {
	case spec.Host != nil:
		if role.Kind != steps.Host {
			return Endpoint{}, fmt.Errorf("%s: must be a cluster, not a host", role.Name)
		}
		h, err := host.NewWith(
			l.File(spec.Host.Root), host.Options{Clusters: o, Timeout: access.Timeout, Here: spec.Host.Here},
		)
		if err != nil {
			return Endpoint{}, fmt.Errorf("%s: %w", role.Name, err)
		}
		return Endpoint{Host: h, Name: spec.Host.Root}, nil
	case spec.Facts != "":
		return openPeerFileEndpoint(l, side, g, keys)
	case spec.Context == "" && spec.Kubeconfig == "" && access.Context == "" && access.Kubeconfig == "":
		missing := "context"
		if role.Kind == steps.Host {
			missing = "machine"
		}
		return Endpoint{Absent: "the link file has no " + missing + " for the " + role.Name}, nil
	}
	if role.Kind != steps.Cluster {
		return Endpoint{}, fmt.Errorf("%s: must be a host, not a context", role.Name)
	}
	if access.Context == "" {
		access.Context = spec.Context
	}
	if access.Kubeconfig == "" {
		access.Kubeconfig, access.FromFile = l.File(spec.Kubeconfig), true
	}
	c, err := cluster.Open(access, o)
	if err != nil {
		return Endpoint{}, fmt.Errorf("%s: %w", role.Name, err)
	}
	return Endpoint{Cluster: c, Name: c.Context(), Config: access.Kubeconfig}, nil
}

func openPeerFileEndpoint(l *linkfile.Link, side steps.Side, g *steps.Guide, keys facts.Keys) (Endpoint, error) {
	role, spec := g.Sides[side], l.Side(side)
	path := l.File(spec.Facts)
	h, err := OpenPeerFile(path, spec.Signer, keys, facts.Expects{
		Guide: g.Name, Link: l.Name(), Side: string(side), Role: role.Name, Secrets: g.SecretFacts(side), Newest: spec.Taken,
		Renamed: g.Renamed,
	})
	if err != nil {
		return Endpoint{}, err
	}
	if err := h.Differences(g, side, l.Answers); err != nil {
		h.Close()
		return Endpoint{}, err
	}
	return Endpoint{
		PeerFile: h, Name: filepath.Base(path), Absent: "the " + role.Name + " is known only from " + path,
	}, nil
}
