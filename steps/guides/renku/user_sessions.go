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

// userSessionChecks returns the checks that verify that the settings that Renku adds to every
// session work on the remote cluster.
func userSessionChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "custom-cas-exist", Title: "The CA Secrets that sessions mount exist", On: steps.Remote,
			Needs: []string{"namespace"}, FixedBy: "custom-cas",
			Why: "Every session mounts the Secrets in Renku's global.certificates.customCAs from its own namespace; without " +
				"one its pod stays in ContainerCreating.",
			References: []string{"SwissDataScienceCenter/renku-data-services: components/renku_data_services/notebooks " +
				"(NB_SESSIONS__CA_CERTS__SECRETS)"},
			Run: customCAsThere,
		},
		{
			Name: "user-secrets", Title: "Users' secrets reach sessions on the remote cluster", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "Sessions fetch user secrets from the address in Renku's notebooks settings, a Service name that only the " +
				"local cluster resolves.",
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
		return steps.Skipped("Renku's sessions mount no custom CA certificates")
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
							"Secret %s/%s has key %s, which the Secret on the %s cluster does not have", ns, name, clean.Name(key),
							e.PeerName(),
						),
					)
				}
			}
		}
	}
	if len(missing) > 0 {
		return steps.Undone("Secret " + strings.Join(missing, ", ") + " does not exist").Or(operatorFix(e))
	}
	if len(more) > 0 {
		return steps.Warned(strings.Join(more, "; ")+": sessions trust every certificate in it",
			e.Kubectl()+" -n "+steps.Quoted(ns)+" edit secret "+strings.Join(names, " ")+
				"    # remove unexpected keys")
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
		return steps.Skipped("%s is not an address", dataServiceKey)
	}
	if host := u.Hostname(); strings.Contains(host, ".") && !check.InsideOnly(host) {
		return steps.Passed("user secrets are fetched from %s", clean.Text(u.Host))
	}
	found := fmt.Sprintf(
		"user secrets are fetched from %s, which only pods of the %s cluster resolve", clean.Text(u.Host), e.SideName(),
	)
	if e.Answers.Text("sessions.user-secrets") == "no" {
		return steps.Passed("%s, but no one needs them (sessions.user-secrets is no)", found)
	}
	return steps.Warned(found+": sessions with user secrets do not start on the "+e.PeerName()+" cluster",
		"tell users of this pool not to use user secrets, then answer sessions.user-secrets: no")
}
