// Package webnode fakes the web node of Open OnDemand. The node is a directory with the files of the OnDemand package
// and the system files that the guide reads. No program runs on it. The package also fakes users who log in to the
// portal, and OnDemand's login hooks. The hooks use only root's kubeconfig in the directory.
//
// Sources (OSC/ondemand e5bbaf1d7):
//
//   - files and modes: packaging/rpm/ondemand.spec; hook.env: hooks/hook.env.example; the keys of ood_portal.yml:
//     ood-portal-generator/share/ood_portal_example.yml and ood-portal-generator/lib/ood_portal_generator/view.rb.
//   - the hook runs as root when a user's web server starts. The web server starts even if the hook fails:
//     nginx_stage/lib/nginx_stage/generators/pun_config_generator.rb (exec_pre_hook), and
//     mod_ood_proxy/lib/ood/nginx_stage.lua, which passes on the path of the hook.
//   - input, checks and objects of the hook: hooks/k8s-bootstrap/k8s-bootstrap-ondemand.sh and the files in
//     hooks/k8s-bootstrap/yaml.
//   - kubectl's part: kubernetes/kubernetes v1.37.2 staging/src/k8s.io/kubectl/pkg/cmd/apply/apply.go, and create,
//     label and patch next to it, for the names of field managers and for the behaviour after an error.
//
// Known differences:
//
//   - The exit status of a hook that fails is always 1, and its stderr is one line in the syslog.
//   - A wrapper script continues after a failed bootstrap if other lines follow, and it contains neither set -e nor ||.
//     Its last command then succeeds, and nothing is logged.
//   - Two users log in when the hook or a file that it reads changes, and again every 3 s after a failure. While the
//     hook, hook.env or the kubeconfig does not exist, no user logs in and nothing is logged.
//   - The hook scripts in the directory never run. In a wrapper script, the fake finds KUBECONFIG and the pod security
//     labels anywhere in the file. set-k8s-creds.sh and the dashboard write no kubeconfig.
//   - Objects are applied server-side, without the annotation last-applied-configuration. An error is the API server's,
//     not kubectl's, and no template is expanded by envsubst.
//   - In hook.env nothing is expanded, and ; & | < > ( ) are ordinary characters. A quoted value cannot span several
//     lines.
//   - ood_portal.yml has the mode 0600, as at a site that keeps a client's secret in it; the RPM has 0644, the Debian
//     package 0640 (packaging/deb/rules). The machine's own files (passwd, group, os-release, messages) are a guess: no
//     source found.
package webnode

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"carrick/cluster/sandbox/standin"
)

//go:embed all:files
var shipped embed.FS

// Paths of files that Open OnDemand reads but does not install.
const (
	HookEnv = "/etc/ood/config/hook.env"
	Portal  = "/etc/ood/config/ood_portal.yml"
	Log     = "/var/log/messages"
)

// modes contains the file modes other than 0644, by path.
var modes = map[string]fs.FileMode{
	Portal:                   0o600,
	"/usr/local/bin/kubectl": 0o755,
	"/opt/ood/hooks/k8s-bootstrap/k8s-bootstrap-ondemand.sh": 0o755,
	"/opt/ood/hooks/k8s-bootstrap/set-k8s-creds.sh":          0o755,
	Log: 0o600,
}

// Users lists the users who log in. The node has a third account whose name is not a valid namespace name. The
// dashboard replaces dots in it with dashes (OSC/ood_core 86656b38 lib/ood_core/job/adapters/kubernetes/batch.rb), but
// the hook does not.
var Users = []string{"alice", "bob"}

// Options configures Start.
type Options struct {
	Dir    string            // parent of the node's directory
	Values map[string]string // values for ${…} in the files
}

// Node is a directory that represents a web node.
type Node struct {
	Root string

	files *os.Root
	end   func()

	mu     sync.Mutex
	played string    // hook state at the last login
	failed bool      // the last login failed
	at     time.Time // time of the last login
}

// Start creates the directory and logs in users until Close is called or ctx is done.
func Start(ctx context.Context, o Options) (*Node, error) {
	n := &Node{Root: filepath.Join(o.Dir, "web-node")}
	if err := os.MkdirAll(filepath.Join(n.Root, "var", "lib"), 0o755); err != nil { // exists on every machine
		return nil, err
	}
	var err error
	if n.files, err = os.OpenRoot(n.Root); err != nil {
		return nil, err
	}
	if err := n.ship(o.Values); err != nil {
		n.files.Close()
		return nil, errors.Join(err, os.RemoveAll(n.Root))
	}
	n.end = standin.Loop(ctx, n.Look)
	return n, nil
}

// Close stops the logins and removes the directory.
func (n *Node) Close() {
	n.end()
	n.files.Close()
	_ = os.RemoveAll(n.Root)
}

// ship writes the initial files. The node is not joined to a cluster yet.
func (n *Node) ship(values map[string]string) error {
	var pairs []string
	for name, value := range values {
		pairs = append(pairs, "${"+name+"}", value)
	}
	fill := strings.NewReplacer(pairs...)
	return fs.WalkDir(shipped, "files", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := shipped.ReadFile(name)
		if err != nil {
			return err
		}
		at := strings.TrimPrefix(name, "files")
		mode, ok := modes[at]
		if !ok {
			mode = 0o644
		}
		return n.Write(at, fill.Replace(string(data)), mode)
	})
}

// Write writes a file on the node.
func (n *Node) Write(name, text string, mode fs.FileMode) error {
	rel := strings.TrimPrefix(name, "/")
	if err := n.files.MkdirAll(filepath.Dir(rel), 0o755); err != nil {
		return err
	}
	if err := n.files.WriteFile(rel, []byte(text), mode); err != nil {
		return err
	}
	return n.files.Chmod(rel, mode)
}

// Read returns the content of a file on the node.
func (n *Node) Read(name string) (string, error) {
	data, err := n.files.ReadFile(strings.TrimPrefix(filepath.Clean(name), "/"))
	return string(data), err
}

// Has reports whether a file exists.
func (n *Node) Has(name string) bool {
	_, err := n.files.Stat(strings.TrimPrefix(name, "/"))
	return err == nil
}

// Remove removes a file. It returns nil if the file does not exist.
func (n *Node) Remove(name string) error {
	if err := n.files.Remove(strings.TrimPrefix(name, "/")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Edit changes a file and keeps its mode.
func (n *Node) Edit(name string, change func(string) string) error {
	text, err := n.Read(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	info, err := n.files.Stat(strings.TrimPrefix(name, "/"))
	if err != nil {
		return err
	}
	return n.Write(name, change(text), info.Mode().Perm())
}

// Set sets variables in the file name, which must have the format of hook.env.
func (n *Node) Set(name string, values map[string]string) error {
	return n.Edit(name, func(text string) string {
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			if key, _, ok := strings.Cut(line, "="); ok {
				if value, given := values[key]; given {
					lines[i] = key + `="` + value + `"`
				}
			}
		}
		return strings.Join(lines, "\n")
	})
}

// say appends a line to the syslog with nginx_stage's tag (OSC/ondemand e5bbaf1d7
// nginx_stage/lib/nginx_stage/generators/pun_config_generator.rb).
func (n *Node) say(format string, args ...any) {
	file, err := n.files.OpenFile(strings.TrimPrefix(Log, "/"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer file.Close()
	text := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	fmt.Fprintf(file, "%s ondemand ood_nginx_stage[%d]: %s\n", time.Now().Format(time.Stamp), os.Getpid(), text)
}
