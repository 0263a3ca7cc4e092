// Package charts fakes Renku's chart repository (https://swissdatasciencecenter.github.io/helm-charts) and how Helm
// renders its charts. The charts were written for the sandbox. They have the names and versions of upstream's charts,
// but only the values and objects that the Renku guide reads.
//
// Render supports only the template functions that these charts use. Scenarios use Render to install a chart without
// Helm. Helm can also install these charts from the repository.
//
// Sources of Renku's charts; the other charts name their sources in their files:
//
//   - renku: SwissDataScienceCenter/renku 2.19.3 (450e12288): helm-chart/renku/values.yaml, requirements.yaml, and
//     templates/ renku-version-configmap.yaml, data-service/{deployment*,serviceaccounts,session-env-secret}.yaml,
//     secrets-storage/deployment.yaml
//   - amalthea-sessions: SwissDataScienceCenter/amalthea 0.30.2 (e97a521) and 0.31.0 (4760427):
//     helm-chart/amalthea-sessions, chartpress.yaml
//   - csi-rclone: SwissDataScienceCenter/csi-rclone v0.6.0 (ec40e70): deploy/csi-rclone, chartpress.yaml
//   - The label app.kubernetes.io/version has the appVersion of their Chart.yaml, which upstream never changes. The
//     appVersion in the index is a guess: the published charts were not available.
//
// Known differences of Renku's charts:
//   - renku has only the four services of Renku: no database, Keycloak, gateway, UI, RBAC, jobs or NetworkPolicies, and
//     only two of its dependencies. The services have no other environment, probes or resources.
//   - amalthea-sessions has no dependency csi-rclone 0.3.5 (deploy.csiRclone), no metrics Service, no probes and no
//     Sentry. Its CustomResourceDefinition has a schema of our own.
//   - csi-rclone has no sidecars next to the driver, except the registrar, and none of its metrics and caches.
//   - Values of the missing parts are ignored, as are nameOverride and fullnameOverride.
//   - Templates set the namespace explicitly. Upstream's templates leave it to Helm.
package charts

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
)

//go:embed all:files
var embedded embed.FS

// OnDemand lists the charts that the guide ondemand installs, each from its own repository
// (https://osc.github.io/job-pod-reaper and https://osc.github.io/k8-namespace-reaper). Sources:
//
//   - OSC/job-pod-reaper 41c1701 (v0.14.0), below charts/job-pod-reaper: names, labels, arguments, RBAC and defaults
//     from values.yaml and from templates/_helpers.tpl, clusterrole.yaml, clusterrolebinding.yaml, deployment.yaml and
//     serviceaccount.yaml.
//   - OSC/k8-namespace-reaper 0d1dcd9 (v0.11.0), below charts/k8-namespace-reaper: likewise.
//
// Known differences: upstream's charts also have a Service, probes, a security context, resources and a node selector,
// and values for these, for names, for RBAC and for more arguments. There is no replicaCount. If reapNamespaces is a
// list, upstream's chart creates a RoleBinding in each namespace, and this chart creates none. The reapers themselves
// (main.go of each) are not implemented: nothing is reaped, and no metrics are served.
var OnDemand = [][]string{{"job-pod-reaper"}, {"k8-namespace-reaper"}}

// InterLink lists the charts in the scenario interlink. One is interLink's own
// (oci://ghcr.io/interlink-hq/interlink-helm-chart). The other two are from its installation page.
var InterLink = [][]string{{"interlink"}, {"ingress-nginx"}, {"bitnami-nginx"}}

// VSphere lists the chart that the guide vsphere installs
// (https://kubernetes-sigs.github.io/nfs-subdir-external-provisioner).
//
// Source: kubernetes-sigs/nfs-subdir-external-provisioner 59a3ca2, charts/nfs-subdir-external-provisioner, whose files
// are equal to the files of the tag nfs-subdir-external-provisioner-4.0.18. Names, objects, rules and defaults are from
// its templates and values.yaml. root.yaml replaces persistentvolume.yaml and persistentvolumeclaim.yaml; rbac.yaml
// replaces the files of the roles, their bindings and the ServiceAccount.
//
// Known differences: the values nameOverride, fullnameOverride, buildMode, podAnnotations, imagePullSecrets,
// priorityClassName, podDisruptionBudget and serviceAccount.annotations are missing. The PodSecurityPolicy is shorter,
// and no role permits its use. Chart.yaml has apiVersion v2, upstream's v1.
var VSphere = [][]string{{"nfs-subdir-external-provisioner"}}

// Renku lists the charts in Renku's repository. Each entry is a list of directories. Files in a later directory replace
// files with the same name in an earlier one.
var Renku = [][]string{
	{"amalthea-sessions"},
	{"amalthea-sessions", "amalthea-sessions-0.31.0"},
	{"csi-rclone"},
	{"renku"},
}

// Chart is one version of a chart.
type Chart struct {
	Name, Version, AppVersion string
	Metadata                  map[string]any    // content of Chart.yaml
	Values                    map[string]any    // default values from values.yaml
	Files                     map[string][]byte // by path; without Chart.yaml
	Dependencies              []Dependency
}

// Dependency is a chart that another chart depends on. Condition is a value of the parent chart that enables the
// dependency, for example "global.csi-rclone.install". If Condition is "", the dependency is always enabled.
type Dependency struct {
	*Chart
	Condition string
}

// All returns the charts in a catalog. Charts with dependencies declare the repository at url as the source.
func All(catalog [][]string, url string) ([]*Chart, error) {
	var all []*Chart
	for _, folders := range catalog {
		chart, err := load(folders)
		if err != nil {
			return nil, fmt.Errorf("chart %s: %w", folders[0], err)
		}
		if err := chart.resolve(all, url); err != nil {
			return nil, err
		}
		all = append(all, chart)
	}
	return all, nil
}

// Find returns the chart with the given name and version.
func Find(all []*Chart, name, version string) (*Chart, error) {
	for _, c := range all {
		if c.Name == name && c.Version == version {
			return c, nil
		}
	}
	return nil, fmt.Errorf("chart %s %s does not exist", name, version)
}

func load(folders []string) (*Chart, error) {
	c := &Chart{Files: map[string][]byte{}}
	for _, folder := range folders {
		root, err := fs.Sub(embedded, path.Join("files", folder))
		if err != nil {
			return nil, err
		}
		err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			c.Files[name], err = fs.ReadFile(root, name)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if err := yaml.Unmarshal(c.Files["Chart.yaml"], &c.Metadata); err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(c.Files["values.yaml"], &c.Values); err != nil {
		return nil, err
	}
	delete(c.Files, "Chart.yaml")
	c.Name, c.Version = text(c.Metadata["name"]), text(c.Metadata["version"])
	c.AppVersion = text(c.Metadata["appVersion"])
	return c, nil
}

// resolve finds the chart's dependencies among the charts in before.
func (c *Chart) resolve(before []*Chart, url string) error {
	entries, _ := c.Metadata["dependencies"].([]any)
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		found, err := Find(before, text(fields["name"]), text(fields["version"]))
		if err != nil {
			return fmt.Errorf("chart %s has a missing dependency: %w", c.Name, err)
		}
		fields["repository"] = url
		c.Dependencies = append(c.Dependencies, Dependency{found, text(fields["condition"])})
	}
	return nil
}

// names returns the sorted paths of files that begin with prefix.
func (c *Chart) names(prefix string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.Files)), func(name string) bool {
		return !strings.HasPrefix(name, prefix)
	})
}

func text(value any) string {
	s, _ := value.(string)
	return s
}
