package renku

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/masked"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

const harm = "an unreachable remote cluster can disrupt Renku. k8s-watcher contacts the clusters one after another " +
	"without a timeout and can restart repeatedly. Lists of resource pools can fail"

func restart() steps.Step {
	return steps.Step{
		Name: "restart", Title: "Restart",
		Map: steps.MapRow{Local: "services"},
		Why: "Renku's services load kubeconfigs and the list of clusters only once. carrick restarts all four services " +
			"after the cluster is registered and before the pool is created. Note: " + harm + ".",
		Actions: []steps.Action{{
			Name: "restart", Title: "Restart the four services that read kubeconfigs", On: steps.Local,
			Needs: []string{
				"stored-kubeconfig", "stored-is-tested", "kubeconfigs-mounted", "peer/server-tls", "peer/credential-accepted",
				"reachable-from-pods",
			},
			Doer: action.Call{
				Preview: planRestart, Make: doRestart, Left: planRestartAgain, Revert: restartAgain, Exports: exportRestart,
			},
		}},
		Checks: []steps.Check{
			{
				Name: "services-restarted", Title: "The four services have restarted since the last change",
				On: steps.Local, FixedBy: "restart",
				Needs: []string{"kubeconfig-stored", "kubeconfigs-mounted"},
				Why: "Without it data-service returns 404, sessions stay \"starting\" or are deleted, and usage is not " +
					"counted. The published guide restarts only three, at the end.",
				References: []string{
					"SwissDataScienceCenter/renku-data-services: components/renku_data_services/k8s/clients.py", page,
				},
				Run: servicesRestarted,
			},
			{
				Name: "kubeconfig-loaded", Title: "The services have loaded the kubeconfig", On: steps.Local, From: "their logs",
				Needs: []string{"services-restarted"},
				Why: "Renku reports an unusable kubeconfig in only one log line. Loading a kubeconfig sends no request, " +
					"so the cluster can still be unreachable.",
				References: []string{kubeconfigSource},
				Run:        kubeconfigLoaded,
			},
			{
				Name: "kubeconfig-first-use", Title: "Services that load on first use have loaded the kubeconfig", On: steps.Local,
				From: "their logs", Needs: []string{"services-restarted"},
				Why: "data-service, data-tasks and secrets-storage load it when they first need a cluster, for example to " +
					"create the pool or to start a session.",
				References: []string{kubeconfigSource},
				Run:        loadedAtFirstUse,
			},
		},
	}
}

// restartedFor returns the name of the pod template annotation that contains the hash of the
// restart's cause.
func restartedFor(link string) string {
	const most = 63 // maximum length of the part of an annotation key after the slash
	name := "restarted-for." + link
	if len(name) > most {
		name = name[:most-13] + "." + strings.TrimPrefix(masked.New(link).Hash(), "sha256:")
	}
	return "carrick/" + name
}

// cause identifies the state that the services must load. hash is a hash of the stored kubeconfig
// and the cluster's id in Renku. since is the time of the latest change to either of them.
type cause struct {
	hash  string
	since time.Time
}

func theCause(ctx context.Context, e steps.Env) (cause, error) {
	stored, err := e.Own.Masked("stored-kubeconfig")
	if err != nil {
		return cause{}, err
	}
	// The time of the write is in managedFields, which cached objects do not have. The cache key
	// contains the kubeconfig's hash, so a new kubeconfig causes a new read.
	at, err := tracked.Look(
		ctx, "handed-over/"+e.Link+"/"+stored.Hash(), 10*time.Second, func(ctx context.Context) (handedOver, error) {
			return whenHandedOver(ctx, e)
		},
	)
	if err != nil {
		return cause{}, err
	}
	id, err := e.Own.Text("cluster-id")
	if absent := (*steps.AbsentError)(nil); err != nil && ulid.MatchString(at.noted) && !(errors.As(err, &absent) &&
		strings.HasPrefix(absent.Why, noCluster)) {
		id, err = at.noted, nil // use the recorded id while Renku's API is not available
	}
	if err != nil {
		return cause{}, err
	}
	c := cause{masked.New(stored.Reveal() + "\n" + id).Hash(), at.changed}
	if made, ok := ulidTime(id); ok && made.After(c.since) {
		c.since = made
	}
	return c, nil
}

// handedOver contains the time of the last write to this link's key in the kubeconfigs Secret, and
// the recorded id of the cluster in Renku.
type handedOver struct {
	changed time.Time
	noted   string
}

func whenHandedOver(ctx context.Context, e steps.Env) (handedOver, error) {
	ns, name := secretWhere(e)
	found, err := e.Cluster.Find(ctx, check.Secrets, ns, cluster.Selector{Fields: "metadata.name=" + name})
	if err != nil || len(found) == 0 {
		return handedOver{}, err
	}
	noted, err := inventory.Note(ctx, e, noteCluster)
	if err != nil && !apierrors.IsForbidden(err) {
		return handedOver{}, err
	}
	return handedOver{
		check.KeySince(found[0].ManagedFields, e.Answers.Text("cluster.config-name")),
		cmp.Or(noted, found[0].Annotations[earlierNotes[noteCluster]+e.Link]),
	}, nil
}

// ulidTime decodes the time in the first ten characters of a ULID. The bool is false if id is not a
// ULID.
func ulidTime(id string) (time.Time, bool) {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	if len(id) != 26 {
		return time.Time{}, false
	}
	var ms int64
	for _, r := range id[:10] {
		i := strings.IndexRune(digits, r)
		if i < 0 {
			return time.Time{}, false
		}
		ms = ms<<5 | int64(i)
	}
	return time.UnixMilli(ms), true
}

// clocksApart is the tolerated clock skew between nodes and API servers.
const clocksApart = 5 * time.Second

// serviceState describes whether a service has loaded the state that a cause identifies.
type serviceState struct {
	service
	marked bool // carrick restarted the service for this cause
	fresh  bool // all pods of the service started after the cause
	since  time.Time
}

// upToDate reports whether the service needs no restart.
func (s serviceState) upToDate() bool { return s.marked || s.fresh }

func serviceStates(ctx context.Context, e steps.Env, c cause) ([]serviceState, error) {
	found, all, err := servicesAndPods(ctx, e)
	if err != nil {
		return nil, err
	}
	var out []serviceState
	for _, s := range found {
		st := serviceState{service: s}
		if s.Deployment == nil {
			out = append(out, st)
			continue
		}
		st.marked = s.Spec.Template.Annotations[restartedFor(e.Link)] == c.hash
		pods, err := podsOf(s.Deployment, all)
		if err != nil {
			return nil, err
		}
		st.fresh = len(pods) > 0 && !c.since.IsZero()
		for _, p := range pods {
			if t := p.Status.StartTime; t != nil {
				st.fresh = st.fresh && t.After(c.since.Add(clocksApart))
				if st.since.IsZero() || t.Time.Before(st.since) {
					st.since = t.Time
				}
			}
		}
		out = append(out, st)
	}
	return out, nil
}

func servicesRestarted(ctx context.Context, e steps.Env) steps.Result {
	c, err := theCause(ctx, e)
	if err != nil {
		return unasked(e, err)
	}
	all, err := serviceStates(ctx, e, c)
	if err != nil {
		return steps.Errored(err)
	}
	var old, names []string
	for _, s := range all {
		switch {
		case s.Deployment == nil:
			old = append(old, "no Deployment has label app="+s.app)
		case !s.upToDate() && s.since.IsZero():
			old = append(old, s.name()+" has no running pod")
		case !s.upToDate():
			old = append(old, s.name()+" has been running since "+s.since.UTC().Format(time.DateTime))
		default:
			names = append(names, s.name())
		}
	}
	if len(old) > 0 {
		return steps.Failed(
			fmt.Sprintf(
				"%s, but the kubeconfig or the cluster changed at %s", strings.Join(old, "; "), c.since.UTC().Format(time.DateTime),
			),
			"",
		)
	}
	open, err := rolling(ctx, e, nil)
	if err != nil {
		return steps.Errored(err)
	}
	if len(open) > 0 {
		return steps.Waits(
			time.Time{}, "%s", strings.Join(open, "; "),
		).Or(e.Kubectl() + " -n " + renkuNamespace(e) + " get pods -l 'app in (" + strings.Join(serviceApps, ",") + ")'")
	}
	return steps.Passed("%s", strings.Join(names, ", "))
}
