package renku

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

// userSessionChecks verify that the settings that Renku adds to every session work on the
// remote cluster.
func userSessionChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "custom-cas-there", Title: "the CA certificates that sessions mount are there", On: steps.Remote,
			Needs: []string{"namespace"}, FixedBy: "custom-cas",
			Why: "every session mounts the Secrets that Renku's global.certificates.customCAs names, by name and in " +
				"its own namespace: without one its pod stays in ContainerCreating",
			References: []string{"SwissDataScienceCenter/renku-data-services: components/renku_data_services/notebooks " +
				"(NB_SESSIONS__CA_CERTS__SECRETS)"},
			Run: customCAsThere,
		},
		{
			Name: "user-secrets", Title: "users' own secrets reach sessions on another cluster", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "a session fetches its user's secrets from the address that Renku's notebooks service was given: the " +
				"name of a Service of the local cluster, which nothing on another one resolves",
			References: []string{"SwissDataScienceCenter/renku-data-services: " +
				"components/renku_data_services/notebooks/api/amalthea_patches/init_containers.py"},
			Run: userSecrets,
		},
	}
}

func customCAsThere(ctx context.Context, e steps.Env) steps.Result {
	names, err := caNames(e)
	if err != nil {
		return steps.Errored(err)
	}
	if len(names) == 0 {
		return steps.Skipped("Renku's sessions mount no CA certificates of their own")
	}
	ns := sessionsNamespace(e)
	copied, err := e.Peer.Map("custom-cas")
	if err != nil && !steps.IsAbsent(err) {
		return steps.Errored(err)
	}
	var missing, more []string
	for _, name := range names {
		live, err := e.Cluster.Get(ctx, check.Secrets, ns, name)
		if err != nil && !apierrors.IsNotFound(err) {
			return steps.Errored(err)
		}
		if err != nil {
			missing = append(missing, ns+"/"+name)
			continue
		}
		data, _, _ := unstructured.NestedMap(live.Object, "data")
		if original, is := copied[name].(map[string]any); is {
			for _, key := range slices.Sorted(maps.Keys(data)) {
				if _, is := original[key]; !is {
					more = append(
						more,
						fmt.Sprintf(
							"Secret %s/%s has key %s, which the %s cluster's does not have", ns, name, clean.Name(key), e.PeerName(),
						),
					)
				}
			}
		}
	}
	if len(missing) > 0 {
		return steps.Undone("there is no Secret " + strings.Join(missing, ", ")).Or(operatorFix(e))
	}
	if len(more) > 0 {
		return steps.Warned(strings.Join(more, "; ")+": sessions trust every certificate in it",
			e.Kubectl()+" -n "+steps.Quoted(ns)+" edit secret "+strings.Join(names, " ")+
				"    # remove keys that no one can explain")
	}
	return steps.Passed("Secret %s in %s", strings.Join(names, ", "), ns)
}

func userSecrets(ctx context.Context, e steps.Env) steps.Result {
	address, ok, err := notebooksValue(ctx, e, dataServiceKey)
	if err != nil {
		return steps.Errored(err)
	}
	if !ok {
		return steps.Errored(steps.Absent("Renku's Secret RELEASE-notebooks has no key %s", dataServiceKey))
	}
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Host == "" {
		return steps.Skipped("%s is no address", dataServiceKey)
	}
	if host := u.Hostname(); strings.Contains(host, ".") && !check.InsideOnly(host) {
		return steps.Passed("they are fetched from %s", clean.Text(u.Host))
	}
	found := fmt.Sprintf(
		"they are fetched from %s, which only pods of the %s cluster resolve", clean.Text(u.Host), e.SideName(),
	)
	if e.Answers.Text("sessions.user-secrets") == "no" {
		return steps.Passed("%s; nobody counts on it (sessions.user-secrets is no)", found)
	}
	return steps.Warned(found+": a session with user secrets does not start on the "+e.PeerName()+" cluster",
		"tell users of this pool to leave user secrets out, then answer sessions.user-secrets: no")
}
