// Lists of pools (crc/db.py filter_resource_pools, crc/apispec.py ResourcePoolWithIdFiltered). A list omits the cluster
// of each pool: the schema has cluster_id, but upstream's model has no such attribute. For each class it reports
// whether the class is large enough for the query (crc/orm.py ResourceClassORM.dump).

package renkuapi

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
)

// list returns the pools that match a query, with quotas read from their clusters. The whole list fails if a cluster
// does not answer.
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

// wanted parses the query parameters of a list into a minimum class.
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
