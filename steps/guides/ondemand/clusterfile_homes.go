package ondemand

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"go.yaml.in/yaml/v3"

	"carrick/steps"
)

// mostHomes is the maximum number of home directories whose kubeconfig carrick reads.
const mostHomes = 200

// homeConfig contains the names and servers in the kubeconfig of a user. Credentials are not decoded.
type homeConfig struct {
	Current  string `yaml:"current-context"`
	Clusters []struct {
		Name    string `yaml:"name"`
		Cluster struct {
			Server string `yaml:"server"`
		} `yaml:"cluster"`
	} `yaml:"clusters"`
	Contexts []struct {
		Name string `yaml:"name"`
	} `yaml:"contexts"`
}

// homes reads the kubeconfigs of root and of the users in the web node's passwd file. found maps the path of each
// kubeconfig to its content. order lists these paths. unreadable is the number of kubeconfigs that could not be read or
// parsed.
func homes(ctx context.Context, e steps.Env) (found map[string]homeConfig, order []string, unreadable int, err error) {
	text, err := e.Host.Read(ctx, passwdFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, 0, err
	}
	paths := []string{homeKubeconfig}
	for _, u := range passwdUsers(string(text)) {
		if strings.HasPrefix(u.home, "/") && len(paths) < mostHomes {
			paths = append(paths, u.home+"/.kube/config")
		}
	}
	found = map[string]homeConfig{}
	for _, p := range paths {
		b, err := e.Host.Read(ctx, p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var c homeConfig
		if err != nil || yaml.Unmarshal(b, &c) != nil {
			unreadable++
			continue
		}
		found[p] = c
		order = append(order, p)
	}
	return found, order, unreadable, nil
}

func clusterNameFree(ctx context.Context, e steps.Env, d clusterDoc) steps.Result {
	name := cmp.Or(d.text("job.cluster"), keyAt("job.cluster").empty)
	endpoint := strings.TrimSuffix(d.text("job.server.endpoint"), "/")
	answered := strings.TrimSuffix(e.Answers.Text("cluster.server"), "/")
	found, order, unreadable, err := homes(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	var taken []string
	for _, p := range order {
		for _, c := range found[p].Clusters {
			if server := strings.TrimSuffix(c.Cluster.Server, "/"); c.Name == name && server != endpoint && server != answered &&
				server != "https://localhost:8080" {
				taken = append(taken, fmt.Sprintf("%s uses the name for %s", p, shownWord(server)))
			}
		}
	}
	others, err := otherClusterFiles(ctx, e, d)
	if err != nil {
		return steps.Errored(err)
	}
	for _, other := range others {
		server := strings.TrimSuffix(other.text("job.server.endpoint"), "/")
		if cmp.Or(other.text("job.cluster"), keyAt("job.cluster").empty) == name && server != endpoint &&
			other.text("job.config_file") == d.text("job.config_file") {
			taken = append(taken, fmt.Sprintf("%s uses the name for %s", other.path, shownWord(server)))
		}
	}
	look := "for u in USERS; do sudo -u $u kubectl config view -o jsonpath='{.clusters[?(@.name==\"" + name +
		"\")].cluster.server}'; done"
	switch {
	case len(taken) > 0:
		return steps.Failed(
			"the cluster name "+shownWord(name)+" is already used: "+shortList(taken, "; ")+
				". The dashboard overwrites the entry in users' kubeconfigs",
			e.ApplyStep("clusterfile")+"    # first set clusterfile.cluster to another name",
		)
	case unreadable > 0:
		return steps.Warned(
			fmt.Sprintf(
				"the cluster name %s is free in %d kubeconfigs, but root cannot read %d others", shownWord(name), len(order),
				unreadable,
			),
			onWebNode(look),
		)
	}
	return steps.Passed(
		"the cluster name %s is free in %d kubeconfigs of root and of users in /etc/passwd, and in %d other cluster files",
		shownWord(name),
		len(order), len(others),
	)
}

func managedContext(ctx context.Context, e steps.Env, d clusterDoc) steps.Result {
	name := d.text("job.context")
	if name == "" {
		return steps.Failed(d.path+" has no job.context, so kubectl uses the current context of each user's kubeconfig", "")
	}
	found, order, unreadable, err := homes(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	var lack []string
	users := 0
	for _, p := range order {
		if p == homeKubeconfig {
			continue
		}
		users++
		has := false
		for _, c := range found[p].Contexts {
			has = has || c.Name == name
		}
		if !has {
			lack = append(lack, p)
		}
	}
	switch {
	case len(lack) > 0:
		return steps.Warned(
			fmt.Sprintf(
				"%d of %d users' kubeconfigs have no context %s: %s", len(lack), users, shownWord(name), shortList(lack, ", "),
			),
			"create the context there, with the tool that writes these kubeconfigs: kubectl config set-context "+
				steps.Quoted(name)+
				" --cluster=CLUSTER --user=USER",
		)
	case users == 0 || unreadable > 0:
		return steps.Warned(
			fmt.Sprintf(
				"job.context is %s. carrick read %d users' kubeconfigs and could not read %d", shownWord(name), users, unreadable,
			),
			onWebNode("sudo -u USER kubectl config get-contexts "+steps.Quoted(name)),
		)
	}
	return steps.Passed("context %s exists in all %d users' kubeconfigs", shownWord(name), users)
}

// otherClusterFiles returns all Kubernetes cluster files except d. When the dashboard starts, it writes an entry for
// each of these clusters into users' kubeconfigs (OSC/ood_core: lib/ood_core/job/adapters/kubernetes/batch.rb,
// configure_kube!).
func otherClusterFiles(ctx context.Context, e steps.Env, d clusterDoc) (out []clusterDoc, err error) {
	names, err := e.Host.List(ctx, clustersFolder)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		at := clustersFolder + "/" + name
		if at == d.path || (!strings.HasSuffix(name, ".yml") && !strings.HasSuffix(name, ".yaml")) {
			continue
		}
		text, err := e.Host.Read(ctx, at)
		if err != nil {
			return nil, err
		}
		if other := parseClusterFile(at, text); other.root != nil && other.text("job.adapter") == "kubernetes" {
			out = append(out, other)
		}
	}
	return out, nil
}
