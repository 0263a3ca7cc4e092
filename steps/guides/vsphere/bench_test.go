package vsphere_test

import (
	"testing"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/steps/check"
	"carrick/steps/guides/vsphere"
	"carrick/steps/stepstest"
)

func bench() stepstest.Bench {
	// the provisioner's namespace, whose labels nothing else manages, has its level or a narrower one
	level := func(is string) func(testing.TB, *cluster.Cluster) {
		return func(tb testing.TB, c *cluster.Cluster) {
			patch := `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":` + is + `}}}`
			if _, err := c.Patch(
				tb.Context(), check.Namespaces, "", "nfs-provisioner", []byte(patch), cluster.PatchOptions{Manager: "bench"},
			); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return stepstest.Bench{
		Guide: vsphere.Guide(), Assets: assets, Counted: "carrick-rwx", TakesOver: true,
		Answers: func(tb testing.TB, box *clustertest.Sandbox, _ string) map[string]any {
			return stepstest.Given(tb, box, vsphere.Guide(), map[string]any{
				// by its address it is another cluster where a proxy is in between
				"storage.source": "nfs", "supervisor.cluster": "kubeflow",
			})
		},
		Reads: [][]string{
			{"get", "storageclasses"},
			{"get", "-n", "carrick-rwx", "persistentvolumeclaims"},
			{"get", "-n", "nfs-provisioner", "deployments"},
			{"get", "-n", "kubeflow", "configmaps"},
			{"get", "profiles.kubeflow.org"},
			{"get", "namespaces"},
			{"get", "mutatingadmissionpolicies"},
			{"auth", "can-i", "create", "persistentvolumeclaims"},
		},
		Breaks: "provisioner-level", Break: level(`"restricted"`), FixedBy: level(`"baseline"`),
	}
}

func BenchmarkPass(b *testing.B)   { bench().Pass(b) }
func BenchmarkChange(b *testing.B) { bench().Change(b) }
func BenchmarkIdle(b *testing.B)   { bench().Idle(b) }
func BenchmarkMemory(b *testing.B) { bench().Memory(b) }
