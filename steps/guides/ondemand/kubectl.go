package ondemand

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"carrick/cluster/host"
	"carrick/cluster/masked"
	"carrick/steps"
	"carrick/steps/action"
)

func kubectl() steps.Step {
	return steps.Step{
		Name: "kubectl", Title: "Root's kubectl",
		Map: steps.MapRow{Local: "root's kubeconfig", Arrow: steps.Remote},
		Why: "At each login the portal's hook runs kubectl as root, and the dashboard runs it as the user. Root's " +
			"kubeconfig never changes, because it refers to files for the CA and the token.",
		Ask: []steps.Question{{
			Key: "kubectl.path", Title: "kubectl path on the web node", Kind: steps.Path, NotFromPeer: true,
			Adopt: adoptKubectl,
			Help: "An absolute path such as /usr/local/bin/kubectl, used in the cluster file and in the script that renews " +
				"the token. carrick does not download kubectl. If kubectl is missing, the check shows how to install it.",
			Default: steps.Fixed("/usr/local/bin/kubectl", "from the published guide"),
			Check:   validKubectl,
		}},
		Actions: []steps.Action{
			{
				Name: "ca-file", Title: "Write the cluster's CA", On: steps.Local,
				Doer: action.File{
					Path: clusterCA, Mode: 0o644, Content: func(_ context.Context, e steps.Env) (masked.Value, error) {
						ca, err := e.Peer.Text("cluster-ca")
						return masked.New(ca), err
					},
				},
			},
			{
				Name: "root-kubeconfig", Title: "Write root's kubeconfig", On: steps.Local,
				Doer: action.File{
					Path: rootKubeconfig, Mode: 0o600, Content: func(_ context.Context, e steps.Env) (masked.Value, error) {
						return encodeRootKubeconfig(e.Answers.Text("cluster.server"))
					},
				},
			},
		},
		Checks: append(kubectlChecks(), rootChecks()...),
	}
}

// validKubectl rejects paths that need quotes in a shell. The adapter inserts the path unquoted into a shell command
// (OSC/ood_core: lib/ood_core/job/adapters/kubernetes/batch.rb, base_cmd, 86656b38).
func validKubectl(p string) error {
	if err := validPath(p); err != nil {
		return err
	}
	if !scriptPath.MatchString(p) {
		return fmt.Errorf(
			"%q: Open OnDemand runs this path in a shell without quotes, so use only letters, digits, slashes and ._+-. On "+
				"the web node: ln -s %s /usr/local/bin/kubectl",
			p, steps.Quoted(p),
		)
	}
	return nil
}

func kubectlPath(e steps.Env) string { return e.Answers.Text("kubectl.path") }

func adoptKubectl(ctx context.Context, e steps.Env) (any, string, error) {
	data, err := e.Host.Read(ctx, clusterPath(e))
	if err == nil {
		var file struct {
			V2 struct {
				Job struct {
					Bin string `yaml:"bin"`
				} `yaml:"job"`
			} `yaml:"v2"`
		}
		if yaml.Unmarshal(data, &file) == nil && file.V2.Job.Bin != "" {
			return file.V2.Job.Bin, "job.bin in " + clusterPath(e), nil
		}
	}
	for _, path := range []string{"/usr/local/bin/kubectl", "/usr/bin/kubectl"} {
		there, err := fileExists(ctx, e, path)
		if err != nil {
			return nil, "", err
		}
		if there {
			return path, "the web node", nil
		}
	}
	return nil, "", steps.Absent("neither /usr/local/bin nor /usr/bin contains kubectl")
}

// inFolder returns a skipped result if err is host.ErrFolder, because carrick cannot run commands in a directory that
// represents the web node. The result tells the user to run command manually.
func inFolder(err error, command string) (steps.Result, bool) {
	if errors.Is(err, host.ErrFolder) {
		return steps.Skipped(
			"a directory represents the web node, so carrick cannot run commands there. Run on the web node: %s", command,
		), true
	}
	return steps.Result{}, false
}

func onWebNode(command string) string { return "run on the web node: " + command }

// permissionFix returns command with each %s replaced by path. If users can replace the file or a directory above it,
// command could change a file of their choice. In this case, permissionFix returns the command from takeFolder instead.
func permissionFix(e steps.Env, path, command string) string {
	leads, err := e.Host.RootsAlone(path)
	if foreign := (*host.FolderError)(nil); errors.As(err, &foreign) {
		return onWebNode(takeFolder(e, foreign.Path, path))
	}
	if err != nil { // the check has read the file, so its path exists
		leads = path
	}
	return onWebNode(strings.ReplaceAll(command, "%s", steps.Quoted(leads)))
}

// systemFolders matches directories that always belong to root.
var systemFolders = regexp.MustCompile(`^/(etc|opt|usr|root|bin|sbin|lib|lib64|run/systemd)(/|$)`)

// takeFolder returns the fix if users can replace file through folder. Root owns all directories above folder. If
// folder is a system directory, the fix makes root its owner. Any other directory can be a home directory or a shared
// directory, so the fix only lists its permissions.
func takeFolder(e steps.Env, folder, file string) string {
	// Folder also returns an error if folder is a symlink.
	if _, err := e.Host.Folder(folder); err != nil || !systemFolders.MatchString(folder) {
		return "namei -l " + steps.Quoted(file) +
			"    # users can replace the file: check who can write to the directories above it, then move the file"
	}
	at := steps.Quoted(folder)
	return "chown root:root " + at + " && chmod go-w " + at + "    # then read " + steps.Quoted(file) +
		": another user may have replaced it"
}

func download(version, path string) string {
	at := "https://dl.k8s.io/release/" + version + "/bin/linux/$arch/kubectl"
	return fmt.Sprintf(`# run on the web node, as root
arch=$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/') && cd "$(mktemp -d)" &&
curl -fsSLO "%s" -O "%s.sha256" &&
echo "$(cat kubectl.sha256)  kubectl" | sha256sum --check &&
install -o root -g root -m 0755 kubectl %s`, at, at, steps.Quoted(path))
}
