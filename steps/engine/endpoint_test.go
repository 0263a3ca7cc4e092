package engine_test

import (
	"strings"
	"testing"

	"carrick/cluster"
	"carrick/cluster/kubeconfig"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

func TestLinkFileSaysThatAFolderIsHere(t *testing.T) {
	g := guide(
		"toy", steps.Role{Name: "edge", Kind: steps.Host}, steps.Role{Name: "there", Kind: steps.Cluster}, steps.Step{},
	)
	for _, c := range []struct {
		situation, host string
		want            bool
	}{
		{"a folder", "{root: DIR}", false},
		{"a folder that is here", "{root: DIR, here: true}", true},
		{"a folder that is not", "{root: DIR, here: false}", false},
		{"this machine", "{root: /}", true},
	} {
		t.Run(c.situation, func(t *testing.T) {
			text := "apiVersion: carrick/v1alpha1\nkind: Link\nmetadata: {name: x}\nguide: toy\nlocal: {host: " +
				strings.Replace(c.host, "DIR", t.TempDir(), 1) + "}\n"
			l, err := linkfile.Parse("l.yaml", []byte(text), []*steps.Guide{g})
			if err != nil {
				t.Fatal(err)
			}
			end, err := engine.OpenEndpoint(l, steps.Local, g, kubeconfig.Access{}, nil, cluster.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer end.Close()
			if end.Host.Here() != c.want {
				t.Errorf("here: %v, want %v", end.Host.Here(), c.want)
			}
			written, err := l.Marshal()
			if err != nil || strings.Contains(string(written), "here: true") != strings.Contains(c.host, "here: true") {
				t.Errorf("written as %s (%v)", written, err)
			}
		})
	}
}
