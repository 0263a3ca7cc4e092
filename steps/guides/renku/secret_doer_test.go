package renku

import (
	"fmt"
	"strings"
	"testing"

	"carrick/cluster/masked"
	"carrick/steps"
)

// What another admin hands over goes into Renku's pods, which run the command that it names.
func TestAKubeconfigThatRunsSomethingIsNotGivenToRenku(t *testing.T) {
	t.Parallel()
	const whole = `apiVersion: v1
kind: Config
current-context: remote
contexts: [{name: remote, context: {cluster: c, user: u, namespace: sessions}}]
clusters: [{name: c, cluster: {server: %q}}]
users: [{name: u, user: {%s}}]
`
	for _, c := range []struct{ server, user, says, fails string }{
		{
			server: "https://10.0.0.7:6443", user: "token: opaque",
			says: "the kubeconfig points to server https://10.0.0.7:6443 and namespace sessions, and authenticates as an " +
				"unreadable token",
		},
		{
			server: "https://10.0.0.7:6443", user: "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}",
			fails: "exec",
		},
		{server: "https://10.0.0.7:6443", user: "tokenFile: /var/run/secrets/token", fails: "tokenFile"},
		{server: "https://kubernetes.default", user: "token: opaque", fails: "the local cluster's own API server"},
		{server: "http://10.0.0.7:8080", user: "token: opaque", fails: "https"},
	} {
		said, err := leadsTo(masked.New(fmt.Sprintf(whole, c.server, c.user)), steps.Facts{})
		if said != c.says || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s, %s: %q, %v", c.server, c.user, said, err)
		}
	}
}
