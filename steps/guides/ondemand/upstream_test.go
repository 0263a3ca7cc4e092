package ondemand_test

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/upstream"
	"carrick/steps"
	"carrick/steps/guides/ondemand"
	"carrick/steps/stepstest"
)

// adapter is a Ruby program that loads the cluster files of a folder with ood_core. It then submits, inspects and
// deletes a user's job, as the portal does in the user's process. Two gems are replaced by stubs: fog, which is for
// OpenStack, and ood_support, which returns the user's groups.
const adapter = `
$LOAD_PATH.unshift(ENV.fetch("OOD_CORE"), ENV.fetch("STUBS"))
require "etc"
require "erb"
require "json"
require "open3"
require "ostruct"
require "pathname"
require "shellwords"
require "ood_core"
require "ood_support"

module Etc
  User = Struct.new(:name, :uid, :gid, :dir)
  class << self
    def getlogin = ENV.fetch("OOD_USER")
    def getpwnam(name) = User.new(name, 2001, 2001, ENV.fetch("HOME"))
    def getgrgid(gid) = Struct.new(:name).new("staff")
  end
end

out = {}
clusters = OodCore::Clusters.load_file(ENV.fetch("CLUSTERS")).to_a
out["clusters"] = clusters.map { |c| [c.id.to_s, c.errors] }.to_h
job = clusters.find { |c| c.id == :upstream }.job_adapter
job.batch.instance_variable_set(:@bin, ENV.fetch("KUBECTL"))
script = OodCore::Job::Script.new(
  content: "sleep 300",
  wall_time: 3600,
  native: { container: {
    name: "web", image: ENV.fetch("IMAGE"), command: "/bin/sh -c true", port: 8080, cpu: "100m", memory: "64Mi"
  } }
)
id = job.submit(script)
out["id"] = id
states = []
120.times do
  states << job.status(id).to_s
  break if states.last == "running"
  sleep 1
end
out["states"] = states.uniq
out["listed"] = job.info_all.map { |i| i.id.to_s }
job.delete(id)
120.times do
  states << job.status(id).to_s
  break if states.last == "completed"
  sleep 1
end
out["last"] = states.last
puts out.to_json
`

// stubs replaces gems that ood_core loads but that its Kubernetes adapter does not need.
var stubs = map[string]string{
	"fog/openstack.rb": "",
	"ood_support.rb":   "module OodSupport\n  class User\n    def groups = []\n  end\nend\n",
}

// TestUpstreamAdapter runs upstream's adapter with the cluster file and the permissions that carrick creates.
func TestUpstreamAdapter(t *testing.T) {
	src := upstream.Find(t, "ood_core")
	ruby, err := exec.LookPath("ruby")
	if err != nil {
		t.Skip("there is no ruby")
	}
	box := seeded(t)
	s := stepstest.Open(t, box, ondemand.Guide(), assets, "upstream", stepstest.Given(t, box, ondemand.Guide(), nil))
	stepstest.Apply(t, s)
	stepstest.Green(t, s)
	root := box.Hosts[string(steps.Local)]
	folder := filepath.Join(root, "etc", "ood", "config", "clusters.d")
	home := t.TempDir()
	userKubeconfig(t, box, folder, home, "alice")
	dir := t.TempDir()
	for name, text := range stubs {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := filepath.Join(dir, "adapter.rb")
	if err := os.WriteFile(script, []byte(adapter), 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), ruby, script)
	run.Env = append(os.Environ(), "OOD_CORE="+filepath.Join(src.Dir, "lib"), "STUBS="+dir, "OOD_USER=alice",
		"HOME="+home, "KUBECONFIG="+filepath.Join(home, ".kube", "config"), "CLUSTERS="+folder,
		"KUBECTL="+box.Kubectl, "IMAGE=docker.io/library/nginx:1.27")
	said, err := run.CombinedOutput()
	var got struct {
		Clusters map[string][]string `json:"clusters"`
		ID       string              `json:"id"`
		States   []string            `json:"states"`
		Listed   []string            `json:"listed"`
		Last     string              `json:"last"`
	}
	if err != nil || json.Unmarshal(said[strings.LastIndex(strings.TrimSpace(string(said)), "\n")+1:], &got) != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	src.Try(t, "the cluster file loads without an error", func(t *testing.T) {
		if errors, is := got.Clusters["upstream"]; !is || len(errors) > 0 {
			t.Errorf("%v", got.Clusters)
		}
	})
	src.Try(t, "a job of a user is submitted, runs, is listed and deleted", func(t *testing.T) {
		ran := slices.Contains(got.States, "running")
		if !ran || !slices.Contains(got.Listed, got.ID) || got.Last != "completed" {
			t.Errorf("%+v", got)
		}
	})
}

// userKubeconfig writes a user's kubeconfig with the names that the adapter expects. It impersonates the user with the
// admin's credentials.
func userKubeconfig(t *testing.T, box *clustertest.Sandbox, folder, home, user string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "upstream.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		V2 struct {
			Job struct {
				Cluster string `json:"cluster"`
				Context string `json:"context"`
				Prefix  string `json:"username_prefix"`
			} `json:"job"`
		} `json:"v2"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	admin, err := clientcmd.LoadFromFile(box.Kubeconfigs[clustertest.Remote])
	if err != nil {
		t.Fatal(err)
	}
	at := admin.Contexts[box.Contexts[clustertest.Remote]]
	config := clientapi.NewConfig()
	job := file.V2.Job
	context := cmp.Or(job.Context, job.Cluster, "open-ondemand")
	config.Clusters[context] = admin.Clusters[at.Cluster]
	config.AuthInfos[user] = admin.AuthInfos[at.AuthInfo].DeepCopy()
	config.AuthInfos[user].Impersonate = job.Prefix + user
	config.Contexts[context] = &clientapi.Context{Cluster: context, AuthInfo: user}
	config.CurrentContext = context
	if err := clientcmd.WriteToFile(*config, filepath.Join(home, ".kube", "config")); err != nil {
		t.Fatal(err)
	}
}
