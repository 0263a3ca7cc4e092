// Handlers for /clusters (crc/blueprints.py ClustersBP, crc/core.py validate_cluster*, crc/db.py ClusterRepository).
// POST and PUT drop the request's TLS flag and store false. With the fault tls-null they keep it, as a newer Renku
// might.

package renkuapi

import (
	"crypto/rand"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// registry contains the clusters and pools in Renku's database.
type registry struct {
	passFlag bool // tls-null: POST and PUT keep the TLS flag
	old      bool // old-renku: clusters have no TLS flag and no ServiceAccount name
	takeName bool // name-taken: another user takes the first requested name

	mu        sync.Mutex
	clusters  map[string]*cluster // by ID
	pools     map[int]*pool
	nextPool  int
	nextClass int
}

func newRegistry(faults map[string]bool) *registry {
	r := &registry{
		passFlag: faults["tls-null"], old: faults["old-renku"], takeName: faults["name-taken"],
		clusters: map[string]*cluster{}, pools: map[int]*pool{}, nextPool: 1, nextClass: 1,
	}
	paris := r.insert(&cluster{
		Name: "Paris", ConfigName: "paris.yaml", Protocol: "https", Host: "sessions.paris.example.org", Port: 443,
		Path: "/sessions", Annotations: map[string]any{}, TLSSecret: pointer("paris-sessions-tls"),
		DefaultCert: r.flag(false),
	})
	r.insertPool(&pool{
		Name: "Paris pool", Public: true, Cluster: paris.ID, Platform: defaultPlatform,
		Classes: []class{{Name: "paris-default", CPU: 1, Memory: 2, MaxStorage: 20, DefaultStorage: 5, Default: true}},
	})
	if r.takeName {
		r.takeByAnother("Remote Cluster")
	}
	return r
}

// takeByAnother adds another user's cluster with the given name.
func (r *registry) takeByAnother(name string) {
	r.insert(&cluster{
		Name: name, ConfigName: "of-another-user.yaml", Protocol: "https", Host: "sessions.another-user.example.org",
		Port: 443,
		Path: "", Annotations: map[string]any{}, TLSSecret: pointer("sessions-tls"), DefaultCert: r.flag(false),
	})
}

func pointer[T any](value T) *T { return &value }

// flag returns the stored value of a TLS flag.
func (r *registry) flag(value bool) *bool {
	if r.old {
		return nil
	}
	return &value
}

// schema returns the schema of a cluster. It differs with the fault old-renku.
func (r *registry) schema() schema {
	if r.old {
		return clusterSchema.without(tlsFlag, accountName)
	}
	return clusterSchema
}

// insert assigns an ID to row and stores it. The caller must hold the lock, unless the registry is not in use yet.
func (r *registry) insert(row *cluster) *cluster {
	row.ID = newULID(time.Now())
	r.clusters[row.ID] = row
	return row
}

// rows returns the clusters in the order of registration. Upstream's SELECT specifies no order.
func (r *registry) rows() []*cluster {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows := []*cluster{}
	for _, id := range slices.Sorted(maps.Keys(r.clusters)) {
		rows = append(rows, r.clusters[id].clone())
	}
	return rows
}

// shared returns the first unique column (name or config_name) whose value another row has, or "".
func (r *registry) shared(row *cluster) string {
	for _, other := range r.clusters {
		switch {
		case other.ID == row.ID:
		case other.Name == row.Name:
			return "name"
		case other.ConfigName == row.ConfigName:
			return "config_name"
		}
	}
	return ""
}

// unique returns an error if another row has the same name or config_name. Only POST checks this in advance.
func (r *registry) unique(row *cluster) error {
	switch r.shared(row) {
	case "name":
		return refusal(
			http.StatusConflict, "Cannot create a cluster because the name is already used, please try a different name.",
		)
	case "config_name":
		return refusal(
			http.StatusConflict, "Cannot create a cluster because the config_name is already used, please try a different one.",
		)
	}
	return nil
}

// indexed returns the database's error for a duplicate value in a unique column. PUT and PATCH return it with status
// 500 (migrations/versions/1d2f64a405aa_create_the_cluster_table.py names the indexes).
func (r *registry) indexed(row *cluster) error {
	column := r.shared(row)
	if column == "" {
		return nil
	}
	return database(`duplicate key value violates unique constraint "ix_resource_pools_clusters_%s"`, column)
}

func (r *registry) listClusters(*http.Request) (int, any, error) {
	return http.StatusOK, r.rows(), nil
}

func (r *registry) postCluster(req *http.Request) (int, any, error) {
	row := &cluster{}
	if err := read(req, r.schema(), row); err != nil {
		return 0, nil, err
	}
	if err := tlsRule(row.Protocol, row.TLSSecret, isTrue(row.DefaultCert)); err != nil {
		return 0, nil, err
	}
	row.DefaultCert = r.flag(r.passFlag && isTrue(row.DefaultCert))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.takeName {
		r.takeName = false
		r.renameTaken(row.Name)
	}
	if err := row.columns(); err != nil {
		return 0, nil, err
	}
	if err := r.unique(row); err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, r.insert(row).clone(), nil
}

// renameTaken gives the requested name to another user's cluster.
func (r *registry) renameTaken(name string) {
	for _, row := range r.clusters {
		if row.ConfigName == "of-another-user.yaml" {
			row.Name = name
		}
	}
}

func (r *registry) getCluster(req *http.Request) (int, any, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	row, err := r.cluster(req.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, row.clone(), nil
}

// cluster returns the row with the given ID. The caller must hold the lock.
func (r *registry) cluster(id string) (*cluster, error) {
	row := r.clusters[id]
	if row == nil {
		return nil, missing("Cluster definition id='%s' does not exist.", id)
	}
	return row, nil
}

// putCluster handles PUT like a PATCH with all fields of the body (crc/models.py ClusterSettings.to_cluster_patch).
// Omitted fields keep their values. The TLS flag becomes false.
func (r *registry) putCluster(req *http.Request) (int, any, error) {
	sent := &cluster{}
	if err := read(req, r.schema(), sent); err != nil {
		return 0, nil, err
	}
	if err := tlsRule(sent.Protocol, sent.TLSSecret, isTrue(sent.DefaultCert)); err != nil {
		return 0, nil, err
	}
	sent.DefaultCert = pointer(r.passFlag && isTrue(sent.DefaultCert))
	return r.change(req.PathValue("id"), sent.patch())
}

func (r *registry) patchCluster(req *http.Request) (int, any, error) {
	sent := &clusterPatch{}
	if err := read(req, r.schema().optional(), sent); err != nil {
		return 0, nil, err
	}
	if isTrue(sent.DefaultCert) && sent.TLSSecret != nil && *sent.TLSSecret != "" {
		return 0, nil, invalid("A patch cannot set both the TLS secret name and the flag for the default TLS certificate.")
	}
	sent.unsetsSecret = sent.TLSSecret != nil && *sent.TLSSecret == ""
	return r.change(req.PathValue("id"), sent)
}

// change patches a row (crc/db.py ClusterRepository.update).
func (r *registry) change(id string, p *clusterPatch) (int, any, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	stored, err := r.cluster(id)
	if err != nil {
		return 0, nil, err
	}
	next := p.on(stored)
	for _, rule := range []error{p.tlsRule(stored), next.columns(), r.indexed(next)} {
		if rule != nil {
			return 0, nil, rule
		}
	}
	r.clusters[id] = next
	return http.StatusCreated, next.clone(), nil
}

// deleteCluster deletes a row. The cluster's pools remain, but use the local cluster.
func (r *registry) deleteCluster(req *http.Request) (int, any, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := req.PathValue("id")
	delete(r.clusters, id)
	for _, p := range r.pools {
		if p.Cluster == id {
			p.Cluster = ""
		}
	}
	return http.StatusNoContent, nil, nil
}

// newULID returns an identifier that sorts by time. It consists of 48 bits of milliseconds and 80 random bits in
// Crockford's base 32.
func newULID(at time.Time) string {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	text := [26]byte{}
	millis := uint64(at.UnixMilli())
	for i := 9; i >= 0; i-- {
		text[i] = digits[millis&31]
		millis >>= 5
	}
	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails
	for i, b := range random {
		text[10+i] = digits[b&31]
	}
	return string(text[:])
}
