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

// userSessionChecks returns checks that verify that Renku's settings for every session also work on
// the remote cluster.
func userSessionChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "custom-cas-exist", Title: "The CA Secrets that sessions mount exist", On: steps.Remote,
			Needs: []string{"namespace"}, FixedBy: "custom-cas",
			Why: "Every session mounts the Secrets in Renku's global.certificates.customCAs from its namespace. If a Secret " +
				"is missing, the pod stays in ContainerCreating.",
			References: []string{"SwissDataScienceCenter/renku-data-services: components/renku_data_services/notebooks " +
				"(NB_SESSIONS__CA_CERTS__SECRETS)"},
			Run: customCAsThere,
		},
		{
			Name: "user-secrets", Title: "Sessions on the remote cluster can fetch user secrets", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "Sessions fetch user secrets from the address in Renku's notebooks settings. If the address is a Service " +
				"name, only the local cluster can resolve it.",
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
		return steps.Warned(strings.Join(more, "; ")+". Sessions trust every certificate in these keys",
			e.Kubectl()+" -n "+steps.Quoted(ns)+" edit secret "+strings.Join(names, " ")+
				"    # remove unexpected keys")
	}
	return steps.Passed("Secret %s exists in namespace %s", strings.Join(names, ", "), ns)
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
		return steps.Skipped("key %s of Renku's Secret RELEASE-notebooks is not a valid URL", dataServiceKey)
	}
	if host := u.Hostname(); strings.Contains(host, ".") && !check.InsideOnly(host) {
		return steps.Passed("sessions fetch user secrets from %s", clean.Text(u.Host))
	}
	found := fmt.Sprintf(
		"sessions fetch user secrets from %s, which only pods of the %s cluster can resolve", clean.Text(u.Host),
		e.SideName(),
	)
	if e.Answers.Text("sessions.user-secrets") == "no" {
		return steps.Passed("%s, but no user needs user secrets here (sessions.user-secrets is no)", found)
	}
	return steps.Warned(found+", so sessions with user secrets do not start on the "+e.PeerName()+" cluster",
		"tell users of this pool not to use user secrets, then set sessions.user-secrets to no")
}
