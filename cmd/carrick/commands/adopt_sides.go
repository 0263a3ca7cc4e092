package commands

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"carrick/cluster/clean"
	"carrick/cmd/carrick/exit"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

func hostSide(g *steps.Guide, side steps.Side, root string) (linkfile.EndpointSpec, error) {
	if root == "" {
		return linkfile.EndpointSpec{}, exit.Usagef(
			"where is the %s? Set --host to / for this machine, or to another root directory", g.Sides[side].Name,
		)
	}
	path, err := filepath.Abs(root)
	if err != nil {
		return linkfile.EndpointSpec{}, err
	}
	return linkfile.EndpointSpec{Host: &linkfile.HostSpec{Root: path}}, nil
}

func (a *app) adoptedSides(g *steps.Guide, host string) (map[steps.Side]linkfile.EndpointSpec, error) {
	out := map[steps.Side]linkfile.EndpointSpec{}
	if host != "" && g.Sides[steps.Local].Kind != steps.Host && g.Sides[steps.Remote].Kind != steps.Host {
		return nil, exit.Usagef("--host: guide %s joins two clusters", g.Name)
	}
	for side, flags := range map[steps.Side]*accessFlags{steps.Local: &a.local, steps.Remote: &a.remote} {
		if g.Sides[side].Kind != steps.Cluster {
			if host == "" && g.Sides[side].Optional {
				continue
			}
			end, err := hostSide(g, side, host)
			if err != nil {
				return nil, err
			}
			out[side] = end
			continue
		}
		end := linkfile.EndpointSpec{Context: flags.context}
		if flags.kubeconfig != "" {
			path, err := filepath.Abs(flags.kubeconfig)
			if err != nil {
				return nil, err
			}
			end.Kubeconfig = path
		}
		known, err := engine.Candidates(flags.kubeconfig)
		if err != nil {
			return nil, exit.AsUsage(err)
		}
		var names []string
		for _, c := range known {
			names = append(names, clean.Text(c.Context))
			if end.Context == "" && c.Current && (side == steps.Local || g.Sides[side.Peer()].Kind == steps.Host ||
				flags.kubeconfig != "") {
				end.Context = c.Context
			}
		}
		if end.Context == "" {
			flag := map[steps.Side]string{steps.Local: "--context", steps.Remote: "--remote-context"}[side]
			return nil, exit.Usagef(
				"which context is the %s? Set %s to one of these contexts:\n  %s", g.Sides[side].Name, flag,
				strings.Join(names, "\n  "),
			)
		}
		out[side] = end
	}
	return out, nil
}

// namedSides returns the sides that have an endpoint in the link. Only optional sides can be without one.
func namedSides(s *engine.Session) []steps.Side {
	return slices.DeleteFunc(slices.Clone(steps.Sides), func(side steps.Side) bool {
		return s.Guide().Sides[side].Optional && *s.Link().Side(side) == (linkfile.EndpointSpec{})
	})
}

func bothAnswer(ctx context.Context, s *engine.Session) error {
	uids := map[string]bool{}
	for _, side := range namedSides(s) {
		p, _ := s.Liveness(ctx, side)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		role := s.Guide().Sides[side].Name
		if why := p.Absent + p.Trouble; why != "" {
			return exit.Unanswered(fmt.Errorf("the %s (%s) does not answer, so nothing was written: %s", role, p.Name, why))
		}
		if s.Endpoint(side).Cluster == nil {
			continue
		}
		if uid, err := s.Endpoint(side).Cluster.UID(ctx); err == nil {
			if uids[uid] {
				return exit.Usagef("both contexts are the same cluster: kube-system has UID %s", uid)
			}
			uids[uid] = true
		}
	}
	return nil
}
