// Changes to pools that exist (renku-data-services:
// components/renku_data_services/crc/core.py, db.py update_resource_pool,
// delete_resource_pool, update_quota). A pool never changes its cluster, a
// quota never its id.

package renkuapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
)

func (s *pools) put(r *http.Request) (int, any, error) { return s.update(r, poolPutSchema, false) }

func (s *pools) patch(r *http.Request) (int, any, error) { return s.update(r, poolPatchSchema, true) }

func (s *pools) update(r *http.Request, fields schema, partial bool) (int, any, error) {
	stored, err := s.find(r, s.who(r))
	if err != nil {
		return 0, nil, err
	}
	body, more := json.RawMessage{}, parts{}
	if err := read(r, fields, &body); err != nil {
		return 0, nil, err
	}
	next := stored.clone()
	if !partial {
		next = stored.emptied()
	}
	if json.Unmarshal(body, next) != nil || json.Unmarshal(body, &more) != nil {
		return 0, nil, wrongType()
	}
	if next.Cluster != stored.Cluster {
		return 0, nil, invalid("The cluster of a resource pool that exists cannot be changed.")
	}
	if next.Classes, err = changedClasses(stored.Classes, more.Classes, partial); err != nil {
		return 0, nil, err
	}
	old, err := s.quotaOf(r.Context(), stored)
	if err != nil {
		return 0, nil, err
	}
	q, err := changedQuota(stored, old, more)
	if err != nil {
		return 0, nil, err
	}
	if err := next.rules(q); err != nil {
		return 0, nil, err
	}
	if more.hasQuota() {
		if err := s.writeQuota(r.Context(), next, q); err != nil {
			return 0, nil, err
		}
	}
	s.store(next)
	return http.StatusOK, next.answer(q), nil
}

// emptied is a pool of which only that is left which a PUT does not write.
func (p *pool) emptied() *pool {
	next := &pool{ID: p.ID, Cluster: p.Cluster, Quota: p.Quota, Platform: defaultPlatform}
	next.Users, next.Members = slices.Clone(p.Users), slices.Clone(p.Members)
	return next
}

// store replaces a row that is still there.
func (s *pools) store(next *pool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pools[next.ID] != nil {
		s.numberClasses(next)
		s.pools[next.ID] = next.clone()
	}
}

// changedClasses puts what was sent on the classes that are there: in a PATCH
// onto those of the same id, else in their place.
func changedClasses(stored []class, sent []json.RawMessage, partial bool) ([]class, error) {
	if sent == nil {
		return stored, nil
	}
	next := []class{}
	if partial {
		next = slices.Clone(stored)
	}
	for _, raw := range sent {
		id := struct{ ID int }{}
		if json.Unmarshal(raw, &id) != nil {
			return nil, wrongType()
		}
		at := slices.IndexFunc(stored, func(c class) bool { return c.ID == id.ID })
		if at < 0 && id.ID != 0 {
			return nil, missing("Resource class with id %d cannot be found", id.ID)
		}
		if !partial {
			next = append(next, class{})
			at = len(next) - 1
		}
		next[at].Tolerations, next[at].Affinities = slices.Clone(next[at].Tolerations), slices.Clone(next[at].Affinities)
		if json.Unmarshal(raw, &next[at]) != nil {
			return nil, wrongType()
		}
	}
	return next, nil
}

// changedQuota puts what was sent on the quota that the cluster has.
func changedQuota(stored *pool, old *quota, more parts) (*quota, error) {
	if !more.hasQuota() {
		return old, nil
	}
	q := &quota{ID: stored.Quota}
	if old != nil {
		*q = *old
	}
	if json.Unmarshal(more.Quota, q) != nil {
		return nil, wrongType()
	}
	if stored.Quota != "" && q.ID != stored.Quota {
		return nil, invalid("The ID of a quota cannot be changed.")
	}
	return q, nil
}

// writeQuota makes a pool's first quota, or changes the one it has.
func (s *pools) writeQuota(ctx context.Context, p *pool, q *quota) error {
	if p.Quota == "" {
		return s.makeQuota(ctx, p, q)
	}
	where := s.reach(p.Cluster)
	if where == nil {
		return notLoaded(p.Cluster)
	}
	return where.updateQuota(ctx, q)
}

// remove deletes the pool, its quota and the quota's PriorityClass, or nothing
// at all where the cluster is not loaded or refuses. A pool that does not exist
// is no error (renku-data-services @ e81895b4:
// components/renku_data_services/crc/db.py _delete_resource_pool, k8s/clients.py
// K8sClusterClientsPool).
func (s *pools) remove(r *http.Request) (int, any, error) {
	p, err := s.find(r, s.who(r))
	if err != nil {
		return http.StatusNoContent, nil, nil
	}
	if p.Quota != "" {
		where := s.reach(p.Cluster)
		if where == nil {
			return 0, nil, notLoaded(p.Cluster)
		}
		if err := where.deleteQuota(r.Context(), p.Quota); err != nil {
			return 0, nil, err
		}
	}
	s.mu.Lock()
	delete(s.pools, p.ID)
	s.mu.Unlock()
	return http.StatusNoContent, nil, nil
}

func (s *pools) getQuota(r *http.Request) (int, any, error) {
	p, err := s.find(r, s.who(r))
	if err != nil {
		return 0, nil, err
	}
	q, err := s.quotaOf(r.Context(), p)
	if err == nil && q == nil {
		err = missing("The quota of the resource pool with id %d cannot be found", p.ID)
	}
	return http.StatusOK, q, err
}

func (s *pools) putQuota(r *http.Request) (int, any, error) { return s.updateQuota(r, quotaSchema) }

func (s *pools) patchQuota(r *http.Request) (int, any, error) {
	return s.updateQuota(r, quotaSchema.optional())
}

func (s *pools) updateQuota(r *http.Request, fields schema) (int, any, error) {
	p, err := s.find(r, s.who(r))
	if err != nil {
		return 0, nil, err
	}
	more := parts{}
	if err := read(r, fields, &more.Quota); err != nil {
		return 0, nil, err
	}
	old, err := s.quotaOf(r.Context(), p)
	if err != nil {
		return 0, nil, err
	}
	if old == nil {
		return 0, nil, missing("The quota of the resource pool with id %d cannot be found", p.ID)
	}
	q, err := changedQuota(p, old, more)
	if err != nil {
		return 0, nil, err
	}
	if err := p.rules(q); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, q, s.writeQuota(r.Context(), p, q)
}
