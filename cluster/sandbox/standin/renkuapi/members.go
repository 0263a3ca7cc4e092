// Who may use a pool (renku-data-services:
// components/renku_data_services/crc/blueprints.py). A pool that is not public
// is for admins alone until users or members are added. POST adds, PUT
// replaces. The stand-in knows no users, groups or projects, so it takes any
// id; of groups and projects it does not know who is in them.

package renkuapi

import (
	"net/http"
	"slices"
)

var userSchema = schema{
	{name: "id", kind: "string", required: true, low: 1},
	{name: "no_default_access", kind: "boolean"},
}

var memberSchema = schema{
	{name: "member_type", kind: "string", required: true, values: []string{"user", "group", "project"}},
	{name: "id", kind: "string", required: true, low: 1},
	{name: "role", kind: "string", required: true, values: []string{"viewer", "prohibited", "group_viewer", "project_viewer"}},
}

// memberRoles are the roles that each type of member may have.
var memberRoles = map[string][]string{
	"user": {"viewer", "prohibited"}, "group": {"group_viewer"}, "project": {"project_viewer"},
}

type poolUser struct {
	ID        string `json:"id"`
	NoDefault bool   `json:"no_default_access"`
}

type poolMember struct {
	Type string `json:"member_type"`
	ID   string `json:"id"`
	Role string `json:"role"`
}

// visible says whether a caller, nil for an anonymous one, sees the pool.
func (p *pool) visible(c *claims) bool {
	switch {
	case c.admin():
		return true
	case c == nil:
		return p.Public
	case slices.Contains(p.Members, poolMember{Type: "user", ID: c.Subject, Role: "prohibited"}):
		return false
	}
	return p.Public || slices.ContainsFunc(p.Users, func(u poolUser) bool { return u.ID == c.Subject }) ||
		slices.Contains(p.Members, poolMember{Type: "user", ID: c.Subject, Role: "viewer"})
}

func (s *pools) getUsers(r *http.Request) (int, any, error) {
	p, err := s.find(r, s.who(r))
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, append([]poolUser{}, p.Users...), nil
}

func (s *pools) postUsers(r *http.Request) (int, any, error) {
	return changeList(s, r, http.StatusCreated, userSchema, nil, func(p *pool, sent []poolUser) []poolUser {
		p.Users = merged(p.Users, sent, func(a, b poolUser) bool { return a.ID == b.ID })
		return p.Users
	})
}

func (s *pools) putUsers(r *http.Request) (int, any, error) {
	return changeList(s, r, http.StatusOK, userSchema, nil, func(p *pool, sent []poolUser) []poolUser {
		p.Users = sent
		return sent
	})
}

func (s *pools) getMembers(r *http.Request) (int, any, error) {
	p, err := s.find(r, s.who(r))
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, append([]poolMember{}, p.Members...), nil
}

func (s *pools) postMembers(r *http.Request) (int, any, error) {
	return changeList(s, r, http.StatusCreated, memberSchema, rolesFit, func(p *pool, sent []poolMember) []poolMember {
		p.Members = merged(p.Members, sent, func(a, b poolMember) bool { return a.ID == b.ID && a.Type == b.Type })
		return p.Members
	})
}

func (s *pools) putMembers(r *http.Request) (int, any, error) {
	return changeList(s, r, http.StatusOK, memberSchema, rolesFit, func(p *pool, sent []poolMember) []poolMember {
		p.Members = sent
		return sent
	})
}

func rolesFit(members []poolMember) error {
	for _, m := range members {
		if !slices.Contains(memberRoles[m.Type], m.Role) {
			return invalid("A member of type %s cannot have the role %s.", m.Type, m.Role)
		}
	}
	return nil
}

// changeList reads a list, checks it, and puts it on the pool of the path.
func changeList[T any](s *pools, r *http.Request, status int, fields schema, fit func([]T) error, put func(*pool, []T) []T) (int, any, error) {
	p, err := s.find(r, s.who(r))
	if err != nil {
		return 0, nil, err
	}
	sent := []T{}
	if err := readList(r, fields, &sent); err != nil {
		return 0, nil, err
	}
	if fit != nil {
		if err := fit(sent); err != nil {
			return 0, nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stored := s.pools[p.ID]
	if stored == nil {
		return 0, nil, missing("Resource pool with id %d cannot be found", p.ID)
	}
	return status, slices.Clone(put(stored, sent)), nil
}

// merged returns old with sent added, or in the place of who is there already.
func merged[T any](old, sent []T, same func(a, b T) bool) []T {
	next := slices.Clone(old)
	for _, one := range sent {
		at := slices.IndexFunc(next, func(other T) bool { return same(one, other) })
		if at < 0 {
			next = append(next, one)
			continue
		}
		next[at] = one
	}
	return next
}
