package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/cluster/permission"
	"carrick/cluster/tracked"
	"carrick/steps"
)

// MissingPermissions maps each side with missing permissions to these permissions.
type MissingPermissions map[steps.Side]Missing

// Missing describes the missing permissions on one side.
type Missing struct {
	Missing []cluster.Decision
	// Needed lists all permissions that the plan requires, granted or not. If Grant listed only the missing permissions,
	// applying it would replace the existing roles and so revoke the granted permissions.
	Needed []permission.Rule
	Partly bool     // further requirements can be determined only after these are granted
	Fresh  []string // namespaces in Needed that might not exist
}

// Grant returns YAML that grants Needed. name is the name of the roles.
func (l Missing) Grant(name string) string { return steps.Grant(name, l.Needed, l.Fresh...) }

// Words returns the missing permissions as text. All verbs on a resource share one entry, such as "create, patch
// secrets in renku".
func (l Missing) Words() []string {
	var kinds []permission.Rule
	verbs := map[permission.Rule][]string{}
	for _, d := range l.Missing {
		kind := d.Rule
		kind.Verb = ""
		if !slices.Contains(steps.VerbsByName, d.Rule.Verb) {
			kind.Name = ""
		}
		if verbs[kind] == nil {
			kinds = append(kinds, kind)
		}
		if !slices.Contains(verbs[kind], d.Rule.Verb) {
			verbs[kind] = append(verbs[kind], d.Rule.Verb)
		}
	}
	out := make([]string, len(kinds))
	for i, kind := range kinds {
		kind.Verb = strings.Join(verbs[kind], ", ")
		out[i] = kind.String()
	}
	return out
}

// MissingPermissions reviews every permission that the plan requires on both sides. It must run before anything is
// written. If a permission is missing, Needed also includes the missing permissions of the checks, so that the user has
// to ask an admin only once.
func (s *Session) MissingPermissions(ctx context.Context, p *Plan) (MissingPermissions, error) {
	ctx = tracked.WithLooks(ctx, s.looks)
	need, partly := map[steps.Side][]permission.Rule{}, map[steps.Side]bool{}
	for _, a := range p.Actions {
		if !a.changes() && !a.Refused && !a.follows {
			continue
		}
		need[a.Side] = append(need[a.Side], a.Change.Permissions...)
		partly[a.Side] = partly[a.Side] || a.Refused
		for _, side := range steps.Sides { // an action of one side can read from the other
			need[side] = append(need[side], s.denied(ctx, side, a.unread)...)
		}
	}
	for side := range s.unplanned(p) {
		need[side] = append(need[side], s.guidePermissions(ctx, side)...)
	}
	out, err := s.lacking(ctx, need)
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return out, p.refused(s.guide)
	}
	s.Look(ctx, s.guide.Cells())
	all := map[steps.Side][]permission.Rule{}
	for side := range out {
		all[side] = append(need[side], s.ends[side].Cluster.Needed()...)
	}
	if out, err = s.lacking(ctx, all); err != nil {
		return nil, err
	}
	for side, lack := range out {
		lack.Partly = partly[side]
		lack.Fresh = s.unsureNamespaces(ctx, side, lack.Needed, p.NewNamespaces(side))
		out[side] = lack
	}
	return out, nil
}

func (s *Session) denied(ctx context.Context, side steps.Side, rights []permission.Rule) []permission.Rule {
	if len(rights) == 0 || s.ends[side].Cluster == nil {
		return nil
	}
	decisions, err := s.ends[side].Cluster.Can(ctx, rights...)
	if err != nil {
		return nil // later requests report the missing permissions
	}
	var out []permission.Rule
	for _, d := range decisions {
		if d.Err == nil && !d.Allowed {
			out = append(out, d.Rule)
		}
	}
	return out
}

// unplanned returns the sides on which an action can't be planned yet. p must cover the whole guide.
func (s *Session) unplanned(p *Plan) map[steps.Side]bool {
	out := map[steps.Side]bool{}
	for _, a := range p.Actions {
		if p.whole && a.Pending != "" && s.ends[a.Side].Cluster != nil {
			out[a.Side] = true
		}
	}
	return out
}

func (s *Session) guidePermissions(ctx context.Context, side steps.Side) []permission.Rule {
	for _, c := range s.guide.Cells() {
		if check, _ := s.guide.Check(c.Check); check.Permissions && c.Side == side {
			s.Probe(ctx, c)
		}
	}
	return s.ends[side].Cluster.Noted()
}

// unsureNamespaces returns those namespaces of the permissions that might not exist, because carrick can't read them.
func (s *Session) unsureNamespaces(
	ctx context.Context, side steps.Side, rights []permission.Rule, fresh []string,
) []string {
	for _, r := range rights {
		if r.Namespace == "" || slices.Contains(fresh, r.Namespace) {
			continue
		}
		if _, err := s.ends[side].Cluster.Get(
			ctx, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "", r.Namespace,
		); err != nil {
			fresh = append(fresh, r.Namespace)
		}
	}
	return fresh
}

// Unread returns the sides on which something could not be read because of missing permissions.
func (s *Session) Unread(ctx context.Context) (MissingPermissions, error) {
	ctx = tracked.WithLooks(ctx, s.looks)
	s.Look(ctx, s.guide.Cells())
	need := map[steps.Side][]permission.Rule{}
	for side, end := range s.ends {
		if end.Cluster != nil {
			need[side] = end.Cluster.Needed()
		}
	}
	out, err := s.lacking(ctx, need)
	for side, lack := range out {
		lack.Partly, lack.Fresh = true, s.unsureNamespaces(ctx, side, lack.Needed, nil)
		out[side] = lack
	}
	return out, err
}

func (s *Session) lacking(ctx context.Context, need map[steps.Side][]permission.Rule) (MissingPermissions, error) {
	out := MissingPermissions{}
	for side, rights := range need {
		if len(rights) == 0 {
			continue
		}
		lack := Missing{Needed: unique(rights)}
		err := waitOut(ctx, nil, func() (err error) {
			lack.Missing, err = s.refusedOf(ctx, side, lack.Needed)
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(lack.Missing) > 0 {
			out[side] = lack
		}
	}
	return out, nil
}

// refusedOf returns the decisions that refuse one of the given permissions.
func (s *Session) refusedOf(ctx context.Context, side steps.Side, rights []permission.Rule) ([]cluster.Decision, error) {
	decisions, err := s.ends[side].Cluster.Can(ctx, rights...)
	if err != nil {
		return nil, fmt.Errorf("check your permissions on the %s: %w", s.guide.Sides[side].Name, err)
	}
	var refused []cluster.Decision
	for _, d := range decisions {
		if d.Err != nil {
			return nil, fmt.Errorf("check whether you are allowed to %s on the %s: %w", d.Rule, s.guide.Sides[side].Name, d.Err)
		}
		if !d.Allowed {
			refused = append(refused, d)
		}
	}
	return refused, nil
}

// refused returns an error if a server would reject an item although every permission is granted. The cause can be a
// quota or an admission rule. Nothing is written then, because apply would stop part-way.
func (p *Plan) refused(g *steps.Guide) error {
	for _, a := range p.Actions {
		if a.Refused {
			return &ActionError{a.Step, a.Action, g.Sides[a.Side].Name, "apply", errors.New(a.Pending)}
		}
		for _, it := range a.Change.Items {
			if it.Refused && !p.namespaceChanges(a.Side, it.What) {
				return &ActionError{a.Step, a.Action, g.Sides[a.Side].Name, "apply", fmt.Errorf("%s: %s", it.What, it.Note)}
			}
		}
	}
	return nil
}

// namespaceChanges reports whether the plan changes or recreates the namespace of an item. The server might then accept
// an item that it rejects now, so apply plans the item again right before it is applied.
func (p *Plan) namespaceChanges(side steps.Side, what string) bool {
	_, name, _ := strings.Cut(what, " ")
	ns, _, inside := strings.Cut(name, "/")
	for _, a := range p.Actions {
		if inside && a.Side == side && a.ending == "Namespace "+ns {
			return true
		}
		for _, it := range a.Change.Items {
			if inside && a.Side == side && it.What == "Namespace "+ns && it.Verb.Changes() && !it.Refused {
				return true
			}
		}
	}
	return false
}

// NewNamespaces returns the namespaces that a plan creates on a side. It also returns the namespaces of objects that
// can't be read yet, because these might not exist either.
func (p *Plan) NewNamespaces(side steps.Side) []string {
	var out []string
	for _, a := range p.Actions {
		for _, r := range a.Change.Permissions {
			if a.Side == side && a.Refused && r.Namespace != "" {
				out = append(out, r.Namespace)
			}
		}
		for _, it := range a.Change.Items {
			if name, ok := strings.CutPrefix(it.What, "Namespace "); ok && a.Side == side && (it.Verb == steps.Create ||
				it.Refused) {
				out = append(out, name)
			}
		}
	}
	return out
}

func unique(rights []permission.Rule) []permission.Rule {
	seen := map[permission.Rule]bool{}
	var out []permission.Rule
	for _, r := range rights {
		if !seen[r] {
			seen[r] = true
			out = append(out, r)
		}
	}
	return out
}
