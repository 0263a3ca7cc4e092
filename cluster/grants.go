package cluster

import (
	"context"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"carrick/cluster/tracked"
)

// The authorizer of an API server reads RBAC objects through watches of its own, so a review that is sent right after a
// change can still return the previous decision. Reviews are sent again after each of these times.
var authorizerLags = [...]time.Duration{250 * time.Millisecond, 3 * time.Second}

// grants counts the changes of the RBAC objects that a cluster watches. The cluster and those that As creates share it.
// All reviews depend on it. Changes that follow each other closely count once.
type grants struct {
	version tracked.Version
	mu      sync.Mutex
	timers  [len(authorizerLags)]*time.Timer
}

func (g *grants) Changes() *tracked.Version { return &g.version }

// Heard returns the current time, because a review itself has the age of its result.
func (g *grants) Heard() (time.Time, bool) { return time.Now(), false }

// changed makes callers send their reviews again after each of authorizerLags.
func (g *grants) changed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, lag := range authorizerLags {
		if g.timers[i] == nil {
			g.timers[i] = time.AfterFunc(lag, g.version.Bump)
		} else {
			g.timers[i].Reset(lag)
		}
	}
}

// reviewed makes the trace of ctx depend on the RBAC objects that the cluster watches.
func (c *Cluster) reviewed(ctx context.Context) { tracked.Note(ctx, c.grants, c.grants.version.Now()) }

// isRBAC reports whether a read returns RBAC objects.
func (k readKey) isRBAC() bool { return k.gvr.Group == rbacv1.GroupName }
