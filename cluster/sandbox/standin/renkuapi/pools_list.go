// Lists of pools (crc/db.py filter_resource_pools, crc/apispec.py ResourcePoolWithIdFiltered). Lists omit the pools'
// clusters: cluster_id is in the schema, but upstream's model lacks the attribute. Each class has a flag for whether it
// is large enough for the query (crc/orm.py ResourceClassORM.dump).

package renkuapi

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
)

// list returns the pools that match the query, with their quotas. It fails if one of their clusters does not respond.
func (s *pools) list(r *http.Request) (int, any, error) {
	want, err := wanted(r)
	if err != nil {
		return 0, nil, err
	}
	user := s.who(r)
	s.mu.Lock()
	rows := []*pool{}
	for _, id := range slices.Sorted(maps.Keys(s.pools)) {
		if p := s.pools[id]; p.visible(user) {
			rows = append(rows, p.clone())
		}
	}
	s.mu.Unlock()
	answers := []poolAnswer{}
	for _, p := range rows {
		q, err := s.quotaOf(r.Context(), p)
		if err != nil {
			return 0, nil, err
		}
		for i := range p.Classes {
			p.Classes[i].Matching = pointer(want.fits(p.Classes[i]))
		}
		a := p.answer(q)
		a.Cluster = nil
		answers = append(answers, a)
	}
	return http.StatusOK, answers, nil
}

// wanted parses the query parameters into a minimum resource class.
func wanted(r *http.Request) (class, error) {
	want, query := class{}, r.URL.Query()
	for name, into := range map[string]*int{"gpu": &want.GPU, "memory": &want.Memory, "max_storage": &want.MaxStorage} {
		if text := query.Get(name); text != "" {
			number, err := strconv.Atoi(text)
			if err != nil || number < 0 {
				return want, wrongFields([]string{name + ": Input should be a valid integer"})
			}
			*into = number
		}
	}
	if text := query.Get("cpu"); text != "" {
		number, err := strconv.ParseFloat(text, 64)
		if err != nil || number < 0 {
			return want, wrongFields([]string{"cpu: Input should be a valid number"})
		}
		want.CPU = number
	}
	return want, nil
}

func (c class) fits(offered class) bool {
	return offered.CPU >= c.CPU && offered.Memory >= c.Memory && offered.GPU >= c.GPU && offered.MaxStorage >= c.MaxStorage
}
