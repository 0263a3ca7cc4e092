package check_test

import (
	"testing"

	"carrick/steps/check"
)

// A field of the wrong type does not hide the rest of a kubeconfig.
func TestAKubeconfigIsReadLoosely(t *testing.T) {
	k, err := check.ReadLoosely(
		[]byte("current-context: a\nclusters: [{name: c, cluster: {server: https://s}}]\nusers: {}\n"),
	)
	if err != nil || !k.Misshapen || k.Current != "a" || len(k.Clusters) != 1 ||
		k.Clusters[0].Cluster.Server != "https://s" {
		t.Errorf("%+v, %v", k, err)
	}
	if _, err := check.ReadLoosely([]byte("a: [")); err == nil {
		t.Error("what is no YAML is read")
	}
}
