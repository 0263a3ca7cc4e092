// Handlers for /resource_pools (crc/blueprints.py ResourcePoolsBP, crc/db.py ResourcePoolRepository). For a pool with a
// quota, Renku creates objects in the pool's cluster before it writes the row. For a pool without a quota, it sends no
// request to the cluster.

package renkuapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
)

// pools serves the pools in a registry. reach returns the connection to cluster id, or nil if Renku has not loaded the
// cluster. The local cluster has the ID "".
type pools struct {
	*registry
	reach func(id string) *connection
	who   func(*http.Request) *claims
}

// poolAnswer is a resource pool in the format of responses.
type poolAnswer struct {
	ID          int            `json:"id"`
	Name        string         `json:"name"`
	Public      bool           `json:"public"`
	Default     bool           `json:"default"`
	Classes     []class        `json:"classes"`
	Quota       *quota         `json:"quota,omitempty"`
	Cluster     *clusterRef    `json:"cluster,omitempty"` // omitted in lists
	Platform    string         `json:"platform"`
	Idle        int            `json:"idle_threshold,omitempty"`
	Hibernation int            `json:"hibernation_threshold,omitempty"`
	Warning     int            `json:"hibernation_warning_period,omitempty"`
	CPULimit    float64        `json:"cpu_limit_factor,omitempty"`
	Remote      map[string]any `json:"remote,omitempty"`
}

type clusterRef struct {
	ID string `json:"id"`
}

func (p *pool) answer(q *quota) poolAnswer {
	a := poolAnswer{
		ID: p.ID, Name: p.Name, Public: p.Public, Default: p.Default, Classes: p.Classes, Quota: q, Platform: p.Platform,
		Idle: p.Idle, Hibernation: p.Hibernation, Warning: p.Warning, CPULimit: p.CPULimit, Remote: p.Remote,
	}
	if p.Cluster != "" {
		a.Cluster = &clusterRef{ID: p.Cluster}
	}
	return a
}

// Messages for a pool that does not exist or that the caller cannot see. They differ between endpoints.
const (
	noPoolHere  = "The resource pool with id %s cannot be found."
	noPoolThere = "Resource pool with id %s cannot be found"
	noPool      = "Resource pool with id %s does not exist"
	noPoolID    = "Cannot find the resource pool with ID %s."
)

// find returns a copy of the pool in the request's path. If the caller cannot see the pool, it returns a 404 with
// message.
func (s *pools) find(r *http.Request, message string) (*pool, error) {
	id, _ := strconv.Atoi(r.PathValue("id"))
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pools[id]
	if p == nil || !p.visible(s.who(r)) {
		return nil, missing(message, r.PathValue("id"))
	}
	return p.clone(), nil
}

// quotaOf reads a pool's quota from its cluster. It returns nil if the pool has no quota, the cluster is not loaded, or
// the cluster refuses the request.
func (s *pools) quotaOf(ctx context.Context, p *pool) (*quota, error) {
	where := s.reach(p.Cluster)
	if p.Quota == "" || where == nil {
		return nil, nil
	}
	return where.readQuota(ctx, p.Quota)
}

func (s *pools) get(r *http.Request) (int, any, error) {
	p, err := s.find(r, noPoolHere)
	if err != nil {
		return 0, nil, err
	}
	q, err := s.quotaOf(r.Context(), p)
	return http.StatusOK, p.answer(q), err
}

// parts contains the fields of a request that need their own validation.
type parts struct {
	Quota   json.RawMessage   `json:"quota"`
	Classes []json.RawMessage `json:"classes"`
}

func (p parts) hasQuota() bool { return len(p.Quota) > 0 && string(p.Quota) != "null" }

func (s *pools) post(r *http.Request) (int, any, error) {
	body := json.RawMessage{}
	if err := read(r, poolSchema, &body); err != nil {
		return 0, nil, err
	}
	p, q, err := newPool(body)
	if err != nil {
		return 0, nil, err
	}
	if err := s.makeQuota(r.Context(), p, q); err != nil {
		return 0, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(p.Quota) > quotaWidth {
		return 0, nil, tooLong(quotaWidth)
	}
	s.insertPool(p)
	return http.StatusCreated, p.clone().answer(q), nil
}

// newPool parses the body of a POST. As in upstream, it drops cpu_limit_factor.
func newPool(body []byte) (*pool, *quota, error) {
	p, more := &pool{Platform: defaultPlatform}, parts{}
	if json.Unmarshal(body, p) != nil || json.Unmarshal(body, &more) != nil {
		return nil, nil, wrongType()
	}
	p.CPULimit = 0
	for _, raw := range more.Classes {
		c := class{}
		if json.Unmarshal(raw, &c) != nil {
			return nil, nil, wrongType()
		}
		p.Classes = append(p.Classes, c)
	}
	if !more.hasQuota() {
		return p, nil, p.rules(nil)
	}
	q := &quota{}
	if json.Unmarshal(more.Quota, q) != nil {
		return nil, nil, wrongType()
	}
	return p, q, p.rules(q)
}

// makeQuota creates the quota in the pool's cluster, which must be loaded. If the request is aborted later, the quota
// remains.
func (s *pools) makeQuota(ctx context.Context, p *pool, q *quota) error {
	if p.Cluster != "" {
		s.mu.Lock()
		_, err := s.cluster(p.Cluster)
		s.mu.Unlock()
		if err != nil {
			return err
		}
	}
	if q == nil {
		return nil
	}
	where := s.reach(p.Cluster)
	if where == nil {
		return notLoaded(p.Cluster)
	}
	if q.ID == "" {
		q.ID = randomID()
	}
	p.Quota = q.ID
	if err := where.createQuota(ctx, q); err != nil {
		return err
	}
	return ctx.Err()
}

func notLoaded(id string) error {
	return missing("Could not find cluster with id %s in the list of clusters.", id)
}
