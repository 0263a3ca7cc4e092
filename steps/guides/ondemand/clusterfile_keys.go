package ondemand

import (
	"strings"

	"carrick/cluster/nearest"
	"carrick/steps"
)

// valueForm is the type that upstream expects of a value in a cluster file.
type valueForm int

// words is a string, flag is a boolean, and file is a path. Upstream does not interpret values of anyForm.
const (
	words valueForm = iota
	flag
	file
	listForm
	mapping
	anyForm
)

// clusterKey describes how upstream reads a key of a cluster file, and what carrick writes.
type clusterKey struct {
	path  string // path under v2; [] stands for each item of a list
	form  valueForm
	open  bool   // for a mapping: allow keys that are not in clusterKeys
	empty string // upstream's default for a missing key; "" if there is none
	read  string // upstream source file that reads the key
	// write returns the value that carrick writes. If write or its result is nil, carrick keeps the existing value.
	write func(steps.Env) any
}

// Special results of clusterKey.write. drop removes the key. dropRelative removes the key only if its value is not an
// absolute path.
type (
	drop         struct{}
	dropRelative struct{}
)

// Upstream source files that read cluster files.
const (
	inClusters    = "OSC/ood_core: lib/ood_core/clusters.rb"
	clusterSource = "OSC/ood_core: lib/ood_core/cluster.rb"
	inFactory     = "OSC/ood_core: lib/ood_core/job/factory.rb"
	inBatch       = "OSC/ood_core: lib/ood_core/job/adapters/kubernetes/batch.rb"
	inPod         = "OSC/ood_core: lib/ood_core/job/adapters/kubernetes/templates/pod.yml.erb"
	inACL         = "OSC/ood_core: lib/ood_core/acl"
	inK8sInit     = "OSC/ondemand: apps/dashboard/config/initializers/k8s.rb"
)

func fixed(value any) func(steps.Env) any { return func(steps.Env) any { return value } }

func keyAnswer(key string) func(steps.Env) any {
	return func(e steps.Env) any { return e.Answers.Text(key) }
}

// answeredOrDrop is like keyAnswer, but removes the key if the answer is empty.
func answeredOrDrop(key string) func(steps.Env) any {
	return func(e steps.Env) any {
		if v := e.Answers.Text(key); v != "" {
			return v
		}
		return drop{}
	}
}

// clusterKeys lists all keys that upstream supports, in the order in which carrick writes them. The linter also uses
// this list.
var clusterKeys = []clusterKey{
	{path: "metadata", form: mapping, open: true, read: clusterSource},
	{path: "metadata.title", empty: "the file's name", read: clusterSource, write: keyAnswer("cluster.title")},
	{path: "metadata.url", read: clusterSource},
	{path: "metadata.hidden", form: flag, empty: "false", read: clusterSource},
	{path: "metadata.priority", form: anyForm, read: clusterSource},
	{path: "login", form: mapping, open: true, empty: "no login", read: clusterSource},
	{path: "login.host", read: clusterSource},
	{path: "acls", form: listForm, empty: "everyone", read: inACL},
	{path: "acls[]", form: mapping, read: inACL},
	{path: "acls[].adapter", read: inACL},
	{path: "acls[].group", read: inACL},
	{path: "acls[].groups", form: listForm, read: inACL},
	{path: "acls[].groups[]", read: inACL},
	{path: "acls[].type", empty: "allowlist", read: inACL},
	{path: "job", form: mapping, read: clusterSource},
	{path: "job.adapter", read: inFactory, write: fixed("kubernetes")},
	{
		path: "job.config_file", form: file, empty: "$KUBECONFIG, or the user's ~/.kube/config", read: inBatch,
		write: fixed(dropRelative{}),
	},
	{path: "job.cluster", empty: "open-ondemand", read: inBatch, write: keyAnswer("clusterfile.cluster")},
	{
		path: "job.context", empty: "none; with auth type oidc the cluster's name", read: inBatch,
		write: answeredOrDrop("clusterfile.context"),
	},
	{path: "job.bin", form: file, empty: "/usr/bin/kubectl", read: inBatch, write: keyAnswer("kubectl.path")},
	{path: "job.username_prefix", empty: "none", read: inBatch, write: keyAnswer("users.username-prefix")},
	{path: "job.namespace_prefix", empty: "none", read: inBatch, write: keyAnswer("users.namespace-prefix")},
	{
		path: "job.all_namespaces", form: flag, empty: "false", read: inBatch,
		write: func(e steps.Env) any { return e.Answers.Bool("clusterfile.all-namespaces") },
	},
	{
		path: "job.auto_supplemental_groups", form: flag, empty: "false", read: inBatch,
		write: func(e steps.Env) any { return e.Answers.Bool("clusterfile.supplemental-groups") },
	},
	{path: "job.server", form: mapping, empty: "the endpoint https://localhost:8080", read: inBatch},
	{path: "job.server.endpoint", read: inBatch, write: keyAnswer("cluster.server")},
	{
		path: "job.server.cert_authority_file", form: file, empty: "the CAs that the system trusts", read: inBatch,
		write: fixed(clusterCA),
	},
	{path: "job.auth", form: mapping, empty: "type managed", read: inBatch},
	{path: "job.auth.type", read: inBatch, write: keyAnswer("cluster.auth")},
	{path: "job.auth.svc_acct_file", form: file, read: inBatch},
	{path: "job.auth.zone", read: inBatch},
	{path: "job.auth.region", read: inBatch},
	{path: "job.mounts", form: listForm, empty: "no mounts", read: inBatch, write: mountsWritten},
	{path: "job.mounts[]", form: mapping, read: inPod},
	{path: "job.mounts[].type", read: inPod},
	{path: "job.mounts[].name", read: inPod},
	{path: "job.mounts[].host", read: inPod},
	{path: "job.mounts[].host_type", read: inPod},
	{path: "job.mounts[].path", form: file, read: inPod},
	{path: "job.mounts[].destination_path", form: file, read: inPod},
	{path: "job.acls", form: listForm, empty: "everyone", read: clusterSource},
	{path: "job.acls[]", form: mapping, read: inACL},
	{path: "job.acls[].adapter", read: inACL},
	{path: "job.acls[].group", read: inACL},
	{path: "job.acls[].groups", form: listForm, read: inACL},
	{path: "job.acls[].groups[]", read: inACL},
	{path: "job.acls[].type", empty: "allowlist", read: inACL},
	{path: "custom", form: mapping, open: true, read: clusterSource},
	{path: "batch_connect", form: mapping, open: true, read: clusterSource},
	{
		path: "batch_connect.ssh_allow", form: flag, empty: "the site's setting, true by default", read: clusterSource,
		write: fixed(false),
	},
}

// keyAt returns the element of clusterKeys for path, or nil if upstream does not support the key.
func keyAt(path string) *clusterKey {
	for i := range clusterKeys {
		if clusterKeys[i].path == path {
			return &clusterKeys[i]
		}
	}
	return nil
}

// keysUnder returns the keys that upstream supports in the mapping at path.
func keysUnder(path string) []string {
	var out []string
	for _, k := range clusterKeys {
		parent, name := cutLast(k.path)
		if parent == path && name != "" {
			out = append(out, name)
		}
	}
	return out
}

// cutLast splits "job.server" into "job" and "server". For a list item such as "job.mounts[]", name is "".
func cutLast(path string) (parent, name string) {
	if strings.HasSuffix(path, "[]") {
		return strings.TrimSuffix(path, "[]"), ""
	}
	at := strings.LastIndex(path, ".")
	if at < 0 {
		return "", path
	}
	return path[:at], path[at+1:]
}

// likelyMeant returns a hint for an unsupported key: a similar key of the same mapping, or else another mapping that
// supports the key. It returns "" if there is no hint.
func likelyMeant(parent, name string) string {
	if near := nearest.Name(name, keysUnder(parent)); near != "" && near != name {
		return "did you mean " + near + "?"
	}
	for _, k := range clusterKeys {
		if above, own := cutLast(k.path); own == name && !strings.Contains(above, "[]") {
			return "the key belongs under " + strings.TrimSuffix("v2."+above, ".")
		}
	}
	return ""
}
