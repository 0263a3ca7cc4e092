package proof

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"carrick/cluster"
	"carrick/cluster/clustertest/cases"
	"carrick/cluster/clustertest/hostile"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/permission"
	"carrick/cmd/carrick/commands"
	"carrick/cmd/carrick/exit"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/stepstest"
)

// mostRounds is the maximum number of times that a user has to ask an admin for permissions. Objects that can't be read
// yet hide further requirements.
const mostRounds = 2

// several is how many permissions are removed at once at first. A permission that is then not reported, because other
// missing permissions hide it, is removed alone.
const several = 12

// A user without permissions gets an error before anything is written, and the printed roles are sufficient. Each
// permission in them is necessary: if it is removed, carrick reports it.
func TestVerifyRights(t *testing.T) {
	t.Parallel()
	eachGuide(t, func(s site) {
		cases.LeftOut(s.T, "right", s.guide.Name)
		for _, side := range steps.Sides {
			s.Run(string(side), func(t *testing.T) {
				one := s
				one.T = t
				if s.guide.Sides[side].Kind == steps.Host {
					t.Skipf("the %s is a machine: it has no API server, and no rights there", s.guide.Sides[side].Name)
				}
				if !s.makes(side) {
					t.Skipf("carrick makes nothing on the %s: no right there holds up an apply", s.guide.Sides[side].Name)
				}
				one.rights(side)
			})
		}
	})
}

// clerk is a user of one side. An admin reads the other side.
type clerk struct {
	site
	side   steps.Side
	name   string
	groups []string
	other  *cluster.Cluster // nil: opened anew
	writes stepstest.Writes
}

func (s site) clerk(side steps.Side, name string, groups ...string) *clerk {
	return &clerk{site: s, side: side, name: name, groups: groups}
}

// session opens a session of the clerk. The test's cleanup closes it.
func (c *clerk) session(o cluster.Options) *engine.Session {
	c.Helper()
	ends := map[steps.Side]engine.Endpoint{}
	for _, side := range steps.Sides {
		if end, ok := c.machine(side); ok {
			ends[side] = end
			continue
		}
		access := c.access(side)
		if side != c.side && c.other != nil {
			ends[side] = engine.Endpoint{Cluster: c.other, Name: access.Context}
			continue
		}
		if side == c.side {
			access.As, access.AsGroups = c.name, c.groups
		}
		on, err := cluster.Open(access, c.writes.Options(o))
		if err != nil {
			c.Fatal(err)
		}
		c.Cleanup(on.Close)
		ends[side] = engine.Endpoint{Cluster: on, Name: access.Context}
	}
	return stepstest.OpenWith(c, c.guide, c.assets, "proof", c.answers, ends)
}

// refused returns the error of apply before it writes anything; nil: apply would continue.
func (c *clerk) refused(ctx context.Context, s *engine.Session) (*engine.Plan, error) {
	return commands.PlanApply(ctx, s, c.takesOver())
}

// nothingWritten fails the test if anything was written.
func (c *clerk) nothingWritten() {
	c.Helper()
	if n := c.writes.Count(); n > 0 {
		c.Errorf("%d requests wrote something", n)
	}
}

func (s site) rights(side steps.Side) {
	name := "carrick-clerk-" + string(side)
	in := func(t *testing.T) site {
		one := s
		one.T = t
		return one
	}
	var granted []stepstest.Granted
	cases.Run(s.T, "right", "none", func(t *testing.T) { granted = in(t).askUntilGranted(side, name) })
	if granted == nil {
		return
	}
	left, idle := in(s.T).without(side, granted, stepstest.Rights(granted), several)
	_, more := in(s.T).without(side, granted, left, 1)
	idle = append(idle, more...)
	held := cases.Run(s.T, "right", "all that was printed", func(t *testing.T) { in(t).enough(side, name, granted, idle) })
	for _, w := range idle {
		cases.Note(s.T, "right", s.Name()+"/"+w.Right().String(), held)
	}
}

// without removes permissions from users who have all others, this many at once. It returns the permissions that cannot
// be judged because others were also missing, and the permissions without which apply would begin.
func (s site) without(
	side steps.Side, granted []stepstest.Granted, rights []stepstest.Lacked, many int,
) (left, idle []stepstest.Lacked) {
	if len(rights) == 0 {
		return nil, nil
	}
	var mu sync.Mutex
	s.Run(fmt.Sprintf("without %d", many), func(t *testing.T) {
		one := s
		one.T = t
		// nothing is written meanwhile, so that all may see the other side as one saw it
		var writes stepstest.Writes
		other, err := cluster.Open(s.access(side.Peer()), writes.Options(cluster.Options{Once: true}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(other.Close)
		for _, w := range one.each(side, granted, rights, many) {
			t.Run(w.Lacks[0].Right().String(), func(t *testing.T) {
				t.Parallel()
				one := s
				one.T = t
				named, refused := one.missed(side, w, other)
				mu.Lock()
				defer mu.Unlock()
				for i, l := range w.Lacks {
					switch {
					case !refused:
						idle = append(idle, l)
					case named[i]:
						cases.Note(t, "right", s.Name()+"/"+l.Right().String(), !t.Failed())
					case many > 1:
						left = append(left, l)
					default:
						t.Errorf("%s is not named", l.Right())
						cases.Note(t, "right", s.Name()+"/"+l.Right().String(), false)
					}
				}
			})
		}
		t.Cleanup(func() {
			if n := writes.Count(); n > 0 {
				t.Errorf("%d requests wrote something on the other side", n)
			}
		})
	})
	return left, idle
}

// makes reports whether the guide creates anything on a side.
func (s site) makes(side steps.Side) bool {
	return slices.ContainsFunc(s.guide.Steps, func(step steps.Step) bool {
		return slices.ContainsFunc(step.Actions, func(a steps.Action) bool { return a.On.Covers(side) })
	})
}

// askUntilGranted is a user without permissions who asks an admin, and asks again if carrick says that more
// requirements can be determined by then.
func (s site) askUntilGranted(side steps.Side, name string) []stepstest.Granted {
	var granted []stepstest.Granted
	for round := 0; ; round++ {
		c := s.clerk(side, name, groupsOf(granted)...)
		_, err := c.refused(s.Context(), c.session(cluster.Options{Once: true}))
		c.nothingWritten()
		if err == nil && round > 0 {
			return granted
		}
		if err == nil {
			s.Fatal("it takes no right at all: this proves nothing")
		}
		if code := exit.Code(s.Context(), err); code != exit.Other {
			s.Errorf("exit code %d", code)
		}
		text := err.Error()
		head, yaml, ok := strings.Cut(text, "These manifests grant them:\n\n")
		if !ok || hostile.Unfit(text) != "" {
			s.Fatalf("no role is printed: %s", text)
		}
		s.Logf("round %d: %s", round+1, head)
		if round == mostRounds {
			s.Fatalf("after %d rounds rights are missing still: %s", round, head)
		}
		s.box.Run(s, string(side), yaml, "apply", "-f", "-")
		granted = stepstest.Grants(s, yaml, name)
		stepstest.Bind(s, s.box, side, granted)
		s.known(side, name, granted)
	}
}

func groupsOf(granted []stepstest.Granted) []string {
	var out []string
	for _, g := range granted {
		out = append(out, g.Group)
	}
	return out
}

// access returns the admin's access to a side. Its timeout tolerates a slow API server, because a hundred users send
// requests at once.
func (s site) access(side steps.Side) kubeconfig.Access {
	return kubeconfig.Access{
		Kubeconfig: s.box.Kubeconfigs[string(side)], Context: s.box.Contexts[string(side)], Timeout: 5 * time.Minute,
	}
}

// known returns once the API server honors the granted roles: the last permission of each role.
func (s site) known(side steps.Side, user string, granted []stepstest.Granted) {
	for _, g := range granted {
		if len(g.Rules) == 0 {
			continue
		}
		rule := g.Rules[len(g.Rules)-1]
		s.may(
			side, user, g.Group, g.Namespace, rule.Verbs[len(rule.Verbs)-1], rule.Resources[0], rule.APIGroups[0],
			rule.ResourceNames,
		)
	}
}

// may returns once a user has a permission.
func (s site) may(side steps.Side, user, group, namespace, verb, resource, apiGroup string, names []string) {
	s.Helper()
	resource, sub, _ := strings.Cut(resource, "/")
	right := permission.Rule{Verb: verb, Group: apiGroup, Resource: resource, Subresource: sub, Namespace: namespace}
	if len(names) > 0 {
		right.Name = names[0]
	}
	access := s.access(side)
	access.As, access.AsGroups = user, []string{group}
	on, err := cluster.Open(access, cluster.Options{Once: true})
	if err != nil {
		s.Fatal(err)
	}
	defer on.Close()
	for {
		d, err := on.Can(s.Context(), right) // outside of a session no answer is kept
		if err != nil {
			s.Fatal(err)
		}
		if d[0].Allowed {
			return
		}
	}
}

// each creates users without these permissions, this many for each user, and returns once the API server knows them.
func (s site) each(
	side steps.Side, granted []stepstest.Granted, rights []stepstest.Lacked, many int,
) []stepstest.Without {
	all := stepstest.UsersWithout(s, s.box, side, granted, rights, many)
	for _, w := range all {
		s.known(side, w.User, []stepstest.Granted{w.Has})
	}
	return all
}

// missed returns which of a user's missing permissions apply names before it writes anything. refused is false if apply
// would begin.
func (s site) missed(side steps.Side, w stepstest.Without, other *cluster.Cluster) (named []bool, refused bool) {
	c := s.clerk(side, w.User, w.Groups...)
	c.other = other
	var err error
	for range 3 { // on a busy machine, a webhook may not answer within its timeout
		_, err = c.refused(s.Context(), c.session(cluster.Options{Once: true}))
		if err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
			break
		}
	}
	c.nothingWritten()
	if err == nil {
		return nil, false
	}
	if code := exit.Code(s.Context(), err); code != exit.Other {
		s.Errorf("exit code %d", code)
	}
	head, _, printed := strings.Cut(err.Error(), "These manifests grant them:\n\n")
	if !printed {
		s.Errorf("no role is printed: %v", err)
	}
	for _, l := range w.Lacks {
		named = append(named, isNamed(head, l.Right()))
	}
	if !slices.Contains(named, true) {
		s.Errorf("none of %v is named: %s", w.Lacks, head)
	}
	return named, true
}

// isNamed reports whether the list of missing permissions contains a permission.
func isNamed(head string, right permission.Rule) bool {
	kind := right
	kind.Verb = ""
	for line := range strings.Lines(head) {
		line = strings.TrimSpace(line)
		if kind.Namespace == "" { // what it is needed for may be in some namespaces alone
			line, _, _ = strings.Cut(line, " in ")
		}
		verbs, found := strings.CutSuffix(line, kind.String())
		if found && slices.Contains(strings.Split(strings.TrimSpace(verbs), ", "), right.Verb) {
			return true
		}
	}
	return false
}

// enough applies as a user with the permissions in granted, except for those in idle. carrick prints those only so that
// everything can be checked. For a user with all of them, all checks pass afterwards.
func (s site) enough(side steps.Side, name string, granted []stepstest.Granted, idle []stepstest.Lacked) {
	user, groups := name, groupsOf(granted)
	if len(idle) > 0 {
		user = name + "-less"
		groups = stepstest.Less(s, s.box, side, granted, idle, user)
		s.known(side, user, stepstest.Remaining(granted, idle, groups))
	}
	c := s.clerk(side, user, groups...)
	session := c.session(cluster.Options{})
	p, err := c.refused(s.Context(), session)
	if err != nil {
		s.Fatal(err)
	}
	admin := stepstest.Open(s, s.box, s.guide, s.assets, "proof", s.answers)
	if err := session.Apply(s.Context(), p, s.options(), nil); err != nil {
		s.Errorf("apply: %v", err)
	} else {
		stepstest.Green(s, s.clerk(side, name, groupsOf(granted)...).session(cluster.Options{}))
	}
	stepstest.Undo(s, admin)
}
