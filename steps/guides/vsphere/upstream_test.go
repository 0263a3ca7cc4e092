package vsphere_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"carrick/cluster/clustertest/upstream"
	"carrick/steps"
	"carrick/steps/guides/vsphere"
	"carrick/steps/stepstest"
)

// TestUpstreamProvisioner installs the chart of nfs-subdir-external-provisioner, and removes it again.
func TestUpstreamProvisioner(t *testing.T) {
	src := upstream.Find(t, "nfs-subdir-external-provisioner")
	charts := t.TempDir()
	version := src.Chart(t, "charts/nfs-subdir-external-provisioner", charts, "")
	box := seeded(t, "")
	src.Try(t, "its chart is installed, all is green, and undo leaves nothing", func(t *testing.T) {
		stepstest.CycleOver(
			t, box, vsphere.Guide(), assets, "upstream", stepstest.Given(t, box, vsphere.Guide(), map[string]any{
				"storage.source": "nfs", "nfs.source": charts, "nfs.version": version,
			}),
		)
	})
}

// exported makes the two functions with which the profile controller labels a namespace callable
// from label.
const exported = `package controllers

import (
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
)

func CarrickLabels(file string, ns *corev1.Namespace) {
	r := &ProfileReconciler{Log: logr.Discard()}
	setNamespaceLabels(ns, r.readDefaultLabelsFromFile(file))
}
`

// label is a program that prints the labels of a namespace after the profile controller has
// labelled it. The arguments are the labels file and the labels before.
const label = `package main

import (
	"encoding/json"
	"os"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubeflow/dashboard/components/profile-controller/controllers"
)

func main() {
	ns := &corev1.Namespace{}
	if err := json.Unmarshal([]byte(os.Args[2]), &ns.Labels); err != nil {
		panic(err)
	}
	controllers.CarrickLabels(os.Args[1], ns)
	_ = json.NewEncoder(os.Stdout).Encode(ns.Labels)
}
`

// TestUpstreamProfileLabels has Kubeflow's profile controller read the file to which carrick adds the level.
func TestUpstreamProfileLabels(t *testing.T) {
	src := upstream.Find(t, "kubeflow-dashboard")
	module := src
	module.Dir = filepath.Join(src.Dir, "components", "profile-controller")
	probe := module.Probe(t, label, map[string]string{"controllers/carrick.go": exported})
	box := seeded(t, "")
	s := doing(t, box, nil, "profile-labels")
	verdict(t, s, "labels-file", steps.Pass)
	file := filepath.Join(t.TempDir(), "namespace-labels.yaml")
	if err := os.WriteFile(file, []byte(labelsText(t, box)), 0o600); err != nil {
		t.Fatal(err)
	}
	labelled := func(t *testing.T, before string) map[string]string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), probe, file, before).Output()
		if err != nil {
			t.Fatal(err)
		}
		labels := map[string]string{}
		if err := json.Unmarshal(out, &labels); err != nil {
			t.Fatal(err)
		}
		return labels
	}
	const enforce = "pod-security.kubernetes.io/enforce"
	src.Try(t, "a new profile gets the level, and one that has another keeps it", func(t *testing.T) {
		if got := labelled(t, `{}`)[enforce]; got != "baseline" {
			t.Errorf("a new profile has the level %q", got)
		}
		if got := labelled(t, `{"`+enforce+`": "restricted"}`)[enforce]; got != "restricted" {
			t.Errorf("a restricted profile has the level %q", got)
		}
	})
}
