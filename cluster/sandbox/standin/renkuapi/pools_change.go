// Changes to existing pools (crc/core.py validate_resource_pool_put_or_patch, validate_resource_pool_update; crc/db.py
// update_resource_pool, delete_resource_pool, update_quota). A pool's cluster and a quota's ID never change.

package renkuapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
)

func (s *pools) put(r *http.Request) (int, any, error) { return s.update(r, poolPutSchema, false) }

func (s *pools) patch(r *http.Request) (int, any, error) { return s.update(r, poolPatchSchema, true) }

// update handles PUT and PATCH. Both leave omitted fields unchanged, with two exceptions: a PUT without a quota
// deletes the quota, and a PUT without cpu_limit_factor removes the factor.
func (s *pools) update(r *http.Request, fields schema, partial bool) (int, any, error) {
	body, more := json.RawMessage{}, parts{}
	if err := read(r, fields, &body); err != nil {
		return 0, nil, err
	}
	stored, err := s.find(r, noPoolThere)
	if err != nil {
		return 0, nil, err
	}
	next := stored.clone()
	if !partial {
		next.CPULimit = 0
	}
	if json.Unmarshal(body, next) != nil || json.Unmarshal(body, &more) != nil {
		return 0, nil, wrongType()
	}
	if next.CPULimit > 0 && next.CPULimit < 1 {
		return 0, nil, wrongFields([]string{"cpu_limit_factor: Input should be greater than or equal to 1"})
	}
	if next.Classes, err = changedClasses(stored, more.Classes, partial); err != nil {
		return 0, nil, err
	}
	old, err := s.quotaOf(r.Context(), stored)
	if err != nil {
		return 0, nil, err
	}
	q, err := changedQuota(old, more, partial)
	if err != nil {
		return 0, nil, err
	}
	if err := next.rules(q); err != nil {
		return 0, nil, err
	}
	if next.Cluster != stored.Cluster {
		if stored.Cluster != "" {
			return 0, nil, invalid("The cluster of a resource pool cannot be changed.")
		}
		next.Cluster = "" // upstream ignores the cluster in a request for a pool without a cluster
	}
	switch {
	case more.hasQuota():
		err = s.storeQuota(r.Context(), next, old, q)
	case !partial && next.Quota != "":
		err = s.dropQuota(r.Context(), next)
	}
	if err != nil {
		return 0, nil, err
	}
	s.store(next)
	return http.StatusOK, next.answer(q), nil
}

// storeQuota writes q to the pool's cluster. old is the existing quota, or nil. Upstream asserts that it can read a
// pool's quota, so the request fails if the cluster is not loaded or has no such quota.
func (s *pools) storeQuota(ctx context.Context, p *pool, old, q *quota) error {
	if p.Quota != "" && old == nil {
		return unexpected()
	}
	return s.writeQuota(ctx, p, q)
}

func (s *pools) store(next *pool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pools[next.ID] != nil {
		s.numberClasses(next)
		s.pools[next.ID] = next.clone()
	}
}

// changedClasses returns the pool's classes with the changes in sent, matched by ID. It neither adds nor removes
// classes.
func changedClasses(p *pool, sent []json.RawMessage, partial bool) ([]class, error) {
	next := slices.Clone(p.Classes)
	for _, raw := range sent {
		id := struct{ ID int }{}
		if json.Unmarshal(raw, &id) != nil {
			return nil, wrongType()
		}
		at := slices.IndexFunc(next, func(c class) bool { return c.ID == id.ID })
		if at < 0 {
			return nil, invalid("Resource class '%d' does not exist in resource pool '%d'.", id.ID, p.ID)
		}
		c := &next[at]
		was := c.Default
		c.Tolerations, c.Affinities = slices.Clone(c.Tolerations), slices.Clone(c.Affinities)
		if !partial {
			c.Tolerations, c.Affinities, c.QuotaEnforced = nil, nil, false
		}
		if json.Unmarshal(raw, c) != nil {
			return nil, wrongType()
		}
		if c.Default != was {
			return nil, invalid("The default class of a resource pool cannot be changed.")
		}
	}
	return next, nil
}

// changedQuota returns the quota with the changes in the request. It returns nil if the request removes the quota.
func changedQuota(old *quota, more parts, partial bool) (*quota, error) {
	if !more.hasQuota() {
		if !partial {
			return nil, nil
		}
		return old, nil
	}
	q := &quota{}
	if old != nil {
		*q = *old
	} else if err := complete(more.Quota); err != nil {
		return nil, err
	}
	id := q.ID
	if json.Unmarshal(more.Quota, q) != nil {
		return nil, wrongType()
	}
	q.ID = id // Renku always assigns the ID of a new quota
	return q, nil
}

// complete returns an error if a new quota lacks a required number.
func complete(sent json.RawMessage) error {
	fields := map[string]any{}
	if json.Unmarshal(sent, &fields) != nil {
		return wrongType()
	}
	for _, name := range []string{"cpu", "memory", "gpu"} {
		if fields[name] == nil {
			return invalid("A new quota needs the field 'quota.%s'.", name)
		}
	}
	return nil
}

// writeQuota creates or updates a pool's quota.
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

// remove deletes a pool, its quota and the quota's PriorityClass. It deletes nothing if the cluster is not loaded or
// refuses a request. Deleting a pool that does not exist succeeds. The default pool cannot be deleted (crc/db.py
// _delete_resource_pool, k8s/clients.py K8sClusterClientsPool).
func (s *pools) remove(r *http.Request) (int, any, error) {
	p, err := s.find(r, noPoolThere)
	if err != nil {
		return http.StatusNoContent, nil, nil
	}
	if p.Default {
		return 0, nil, invalid("The default resource pool cannot be deleted.")
	}
	if p.Quota != "" {
		if err := s.dropQuota(r.Context(), p); err != nil {
			return 0, nil, err
		}
	}
	s.mu.Lock()
	delete(s.pools, p.ID)
	s.mu.Unlock()
	return http.StatusNoContent, nil, nil
}

func (s *pools) dropQuota(ctx context.Context, p *pool) error {
	where := s.reach(p.Cluster)
	if where == nil {
		return notLoaded(p.Cluster)
	}
	name := p.Quota
	p.Quota = ""
	return where.deleteQuota(ctx, name)
}

// noQuota returns the 404 for a pool that has no quota or whose quota cannot be read from the cluster.
func noQuota(p *pool) error {
	return missing("The resource pool with ID %d does not have a quota.", p.ID)
}

func (s *pools) getQuota(r *http.Request) (int, any, error) {
	p, err := s.find(r, noPoolID)
	if err != nil {
		return 0, nil, err
	}
	q, err := s.quotaOf(r.Context(), p)
	if err == nil && q == nil {
		err = noQuota(p)
	}
	return http.StatusOK, q, err
}

func (s *pools) putQuota(r *http.Request) (int, any, error) { return s.updateQuota(r, quotaPutSchema) }

func (s *pools) patchQuota(r *http.Request) (int, any, error) {
	return s.updateQuota(r, quotaPatchSchema)
}

func (s *pools) updateQuota(r *http.Request, fields schema) (int, any, error) {
	p, err := s.find(r, noPoolID)
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
		return 0, nil, noQuota(p)
	}
	q, err := changedQuota(old, more, true)
	if err != nil {
		return 0, nil, err
	}
	if id := (quota{}); json.Unmarshal(more.Quota, &id) == nil && id.ID != "" && id.ID != old.ID {
		return 0, nil, invalid("The 'id' field of a quota is immutable.")
	}
	if err := p.rules(q); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, q, s.writeQuota(r.Context(), p, q)
}
