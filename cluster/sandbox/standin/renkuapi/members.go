// Access to pools (crc/blueprints.py ResourcePoolUsersBP, ResourcePoolMembersBP; crc/db.py MemberRepository). Until
// users or members are added, only admins can use a pool that is not public. POST adds to the list and PUT replaces it.
// Unknown IDs return 404 (crc/db.py _resolve_members). This fake has fixed IDs in directory, and its groups and
// projects have no members.

package renkuapi

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
)

var userIDs = regexp.MustCompile(`^[A-Za-z0-9]{1}[A-Za-z0-9-]+$`)

var userSchema = schema{
	{name: "id", kind: "string", required: true, pattern: userIDs},
	{name: "no_default_access", kind: "boolean"},
}

var memberSchema = schema{
	{name: "member_type", kind: "string", required: true, values: []string{"user", "group", "project"}},
	{name: "id", kind: "string", required: true, low: 1},
	{
		name: "role", kind: "string", required: true,
		values: []string{"viewer", "prohibited", "group_viewer", "project_viewer"},
	},
}

// memberRoles contains the permitted roles by type of member.
var memberRoles = map[string][]string{
	"user": {"viewer", "prohibited"}, "group": {"group_viewer"}, "project": {"project_viewer"},
}

// directory contains the users, groups and projects by type and ID, with the fields of a response (blueprints.py
// _dump_member_response).
var directory = map[string]map[string]map[string]string{
	"user": {
		"3d6c2a9e-5b0f-4a52-9a3e-0d1d5a1e7c11": {"email": "ana@example.org"},
		"8f14e45f-ceea-467f-a0e6-b7f2b2a6c7d2": {"email": "ben@example.org"},
	},
	"group":   {"01J0GR0VP00000000000000000": {"slug": "a-group", "name": "A group"}},
	"project": {"01J0PR0JECT000000000000000": {"namespace": "ana/a-project", "name": "A project"}},
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

// answers converts members to the format of responses.
func answers(members []poolMember) any {
	out := []map[string]string{}
	for _, m := range members {
		one := map[string]string{"member_type": m.Type, "id": m.ID, "role": m.Role}
		maps.Copy(one, directory[m.Type][m.ID])
		out = append(out, one)
	}
	return out
}

func users(all []poolUser) any { return append([]poolUser{}, all...) }

// visible reports whether a caller can see the pool. c is nil for an anonymous caller.
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
	p, err := s.find(r, noPool)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, users(p.Users), nil
}

func (s *pools) postUsers(r *http.Request) (int, any, error) {
	return changeList(s, r, http.StatusCreated, userSchema, usersKnown, users, func(p *pool, sent []poolUser) []poolUser {
		p.Users = merged(p.Users, sent, func(a, b poolUser) bool { return a.ID == b.ID })
		return p.Users
	})
}

func (s *pools) putUsers(r *http.Request) (int, any, error) {
	return changeList(s, r, http.StatusOK, userSchema, usersKnown, users, func(p *pool, sent []poolUser) []poolUser {
		p.Users = sent
		return sent
	})
}

func (s *pools) getMembers(r *http.Request) (int, any, error) {
	p, err := s.find(r, noPool)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, answers(p.Members), nil
}

func (s *pools) postMembers(r *http.Request) (int, any, error) {
	return changeList(
		s, r, http.StatusCreated, memberSchema, membersFit, answers, func(p *pool, sent []poolMember) []poolMember {
			p.Members = merged(p.Members, sent, func(a, b poolMember) bool { return a.ID == b.ID && a.Type == b.Type })
			return p.Members
		},
	)
}

func (s *pools) putMembers(r *http.Request) (int, any, error) {
	return changeList(
		s, r, http.StatusOK, memberSchema, membersFit, answers, func(p *pool, sent []poolMember) []poolMember {
			p.Members = sent
			return sent
		},
	)
}

// membersFit validates members against the schemas of their types, and checks that their IDs exist.
func membersFit(members []poolMember) error {
	faults := []string{}
	for i, m := range members {
		ids := ulid
		if m.Type == "user" {
			ids = userIDs
		}
		of := schema{
			{name: "role", kind: "string", required: true, values: memberRoles[m.Type]},
			{name: "id", kind: "string", required: true, pattern: ids},
		}
		faults = append(faults, of.faults(fmt.Sprintf("%d.%s.", i, m.Type), map[string]any{"role": m.Role, "id": m.ID})...)
	}
	if len(faults) > 0 {
		return wrongFields(faults)
	}
	for _, m := range members {
		if directory[m.Type][m.ID] != nil {
			continue
		}
		switch m.Type {
		case "user":
			return missing("User with ID %s does not exist", m.ID)
		case "group":
			return missing("The group with id %s does not exist", m.ID)
		}
		return missing("Project with id '%s' does not exist or you do not have access to it.", m.ID)
	}
	return nil
}

func usersKnown(sent []poolUser) error {
	for _, u := range sent {
		if directory["user"][u.ID] == nil {
			return missing("The users with IDs {'%s'} cannot be found", u.ID)
		}
	}
	return nil
}

// changeList reads a list from a request, validates it and stores it in the pool.
func changeList[T any](
	s *pools, r *http.Request, status int, fields schema, fit func([]T) error, show func([]T) any,
	put func(*pool, []T) []T,
) (int, any, error) {
	p, err := s.find(r, noPool)
	if err != nil {
		return 0, nil, err
	}
	sent := []T{}
	if err := readList(r, fields, &sent); err != nil {
		return 0, nil, err
	}
	if err := fit(sent); err != nil {
		return 0, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stored := s.pools[p.ID]
	if stored == nil {
		return 0, nil, missing(noPool, strconv.Itoa(p.ID))
	}
	return status, show(put(stored, sent)), nil
}

// merged returns old with the elements in sent added or replaced.
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
