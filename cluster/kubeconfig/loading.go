package kubeconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"carrick/cluster/clean"
	"carrick/cluster/nearest"
)

// Loaded is the configuration of one kubeconfig context.
type Loaded struct {
	Config             *rest.Config
	Context, Namespace string
}

// Load reads the kubeconfig by kubectl's rules and returns the context that a.Context names. In a pod without a
// kubeconfig, it returns the configuration for the pod's own cluster.
func Load(a Access) (Loaded, error) {
	a.Kubeconfig = atHome(a.Kubeconfig)
	merged, err := merge(a.Kubeconfig)
	if errors.Is(err, errNoKubeconfig) && a.Context == "" {
		if cfg, inPod := rest.InClusterConfig(); inPod == nil {
			return Loaded{Config: impersonating(cfg, a)}, nil
		}
	}
	if err != nil {
		return Loaded{}, err
	}
	name := a.Context
	if name == "" {
		name = merged.CurrentContext
	}
	if err := checkContext(merged, name, a.Kubeconfig); err != nil {
		return Loaded{}, err
	}
	if a.FromFile && a.Kubeconfig != "" && !usersOwn(a.Kubeconfig) {
		if err := unasked(merged.AuthInfos[merged.Contexts[name].AuthInfo], a.Kubeconfig); err != nil {
			return Loaded{}, fmt.Errorf("context %q: %w", name, err)
		}
	}
	chosen := clientcmd.NewNonInteractiveClientConfig(
		*merged, name, &clientcmd.ConfigOverrides{}, loadingRules(a.Kubeconfig),
	)
	cfg, err := chosen.ClientConfig()
	if err != nil {
		return Loaded{}, fmt.Errorf("context %q: %s", name, strings.TrimPrefix(err.Error(), "invalid configuration: "))
	}
	return Loaded{Config: impersonating(cfg, a), Context: name, Namespace: merged.Contexts[name].Namespace}, nil
}

// usersOwn reports whether a kubeconfig belongs to the user, because it is in ~/.kube or in $KUBECONFIG.
func usersOwn(path string) bool {
	path, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	home, err := os.UserHomeDir()
	same := func(other string) bool {
		other, err := filepath.Abs(other)
		return err == nil && other == path
	}
	return (err == nil && filepath.Dir(path) == filepath.Join(home, clientcmd.RecommendedHomeDir)) ||
		slices.ContainsFunc(filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar)), same)
}

// unasked returns an error if a user entry would run a program or send the content of a file. It returns nil if the
// entry contains the credentials themselves.
func unasked(user *clientcmdapi.AuthInfo, path string) error {
	does := ""
	switch {
	case user == nil:
	case user.Exec != nil:
		does = fmt.Sprintf("runs %q", clean.Text(user.Exec.Command))
	case user.AuthProvider != nil:
		does = fmt.Sprintf("uses the auth provider %q", clean.Text(user.AuthProvider.Name))
	case user.TokenFile != "":
		does = fmt.Sprintf("sends the content of %q", clean.Text(user.TokenFile))
	}
	if does == "" {
		return nil
	}
	return fmt.Errorf(
		"kubeconfig %s is named in a link file and %s, which carrick does not allow for such a kubeconfig: pass it with "+
			"--kubeconfig or --remote-kubeconfig, put it in ~/.kube, or add it to $KUBECONFIG",
		path, does,
	)
}

func impersonating(cfg *rest.Config, a Access) *rest.Config {
	if a.As != "" || len(a.AsGroups) > 0 {
		cfg.Impersonate = rest.ImpersonationConfig{UserName: a.As, Groups: a.AsGroups}
	}
	return cfg
}

func loadingRules(path string) *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	rules.MigrationRules = nil // the migration rules write files
	rules.WarnIfAllMissing = false
	return rules
}

// atHome expands "~/" at the start of a path. In a flag such as --kubeconfig=~/config, the shell does not expand it.
func atHome(path string) string {
	rest, ok := strings.CutPrefix(path, "~/")
	home, err := os.UserHomeDir()
	if !ok || err != nil {
		return path
	}
	return filepath.Join(home, rest)
}

// errNoKubeconfig means that no kubeconfig file exists.
var errNoKubeconfig = errors.New("no kubeconfig")

// merge reads and merges the kubeconfig files that kubectl would read.
func merge(path string) (*clientcmdapi.Config, error) {
	rules := loadingRules(path)
	files := rules.Precedence
	if path != "" {
		files = []string{path}
	}
	found := false
	for _, file := range files {
		if file == "" {
			continue
		}
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			return nil, fmt.Errorf("kubeconfig %s is a directory: name a file in it", file)
		}
		_, err := clientcmd.LoadFromFile(file)
		switch {
		case err == nil:
			found = true
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("read kubeconfig %s%w", file, located(file, err))
		}
	}
	if !found {
		return nil, missing(path, files)
	}
	merged, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return merged, nil
}

func missing(path string, files []string) error {
	switch {
	case path != "":
		return fmt.Errorf("%w: %s does not exist", errNoKubeconfig, path)
	case os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "":
		return fmt.Errorf("%w: $KUBECONFIG names %s, which does not exist", errNoKubeconfig, strings.Join(files, ", "))
	default:
		return fmt.Errorf("%w: %s does not exist and $KUBECONFIG is not set", errNoKubeconfig, strings.Join(files, ", "))
	}
}

// checkContext returns an error if a context does not exist or is unusable. If it does not exist, the error lists the
// existing contexts.
func checkContext(merged *clientcmdapi.Config, name, path string) error {
	where := "the kubeconfig"
	if path != "" {
		where = "kubeconfig " + path
	}
	names := slices.Sorted(maps.Keys(merged.Contexts))
	if len(names) == 0 {
		return fmt.Errorf("%s has no context", where)
	}
	if name == "" {
		return fmt.Errorf("%s has no current context: choose one of %s", where, clean.List(names))
	}
	chosen := merged.Contexts[name]
	if chosen == nil {
		if near := nearest.Name(name, names); near != "" {
			return fmt.Errorf("%s has no context %q: did you mean %q? Its contexts are %s", where, name, near, clean.List(names))
		}
		return fmt.Errorf("%s has no context %q: its contexts are %s", where, name, clean.List(names))
	}
	if at := merged.Clusters[chosen.Cluster]; at == nil {
		return fmt.Errorf("context %q: %s has no cluster %q, which it names", name, where, chosen.Cluster)
	} else if at.Server == "" {
		return fmt.Errorf("context %q: cluster %q in %s has no server", name, chosen.Cluster, where)
	}
	if chosen.AuthInfo != "" && merged.AuthInfos[chosen.AuthInfo] == nil {
		return fmt.Errorf("context %q: %s has no user %q, which it names", name, where, chosen.AuthInfo)
	}
	return nil
}
