package liqonet

import (
	"hash"
	"hash/fnv"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	lively = 3 * time.Second // after a change every look is taken
	rarely = 3               // later one in so many
)

// pace leaves out looks while nothing changes, for the sake of the API server.
type pace struct {
	ticks   int
	sum     uint64 // of what the last look saw
	changed time.Time
}

// skip tells whether the next look can be left out.
func (p *pace) skip(now time.Time) bool {
	p.ticks++
	return now.Sub(p.changed) > lively && p.ticks%rarely != 0
}

// saw takes the sum of what a look saw.
func (p *pace) saw(sum uint64, now time.Time) {
	if sum != p.sum {
		p.sum, p.changed = sum, now
	}
}

// sum changes with what was read. Connections, which are written all the time,
// are left out.
func (all *objects) sum() uint64 {
	h := fnv.New64a()
	add(h, all.configurations)
	add(h, all.ends)
	add(h, all.networks)
	add(h, all.secrets)
	add(h, all.keys)
	add(h, all.deployments)
	add(h, all.services)
	add(h, all.pods)
	return h.Sum64()
}

func add[T any, P interface {
	*T
	metav1.Object
}](h hash.Hash, all []T) {
	for i := range all {
		o := P(&all[i])
		_, _ = io.WriteString(h, string(o.GetUID())+o.GetResourceVersion()+" ")
	}
}
