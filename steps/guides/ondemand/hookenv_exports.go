package ondemand

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"carrick/steps"
)

// envKubeconfig is the kubeconfig that hook.env gives upstream's bootstrap, which sources the file after the pre-hook
// has exported one; "": none.
func envKubeconfig(ctx context.Context, e steps.Env) (string, error) {
	f, err := openHookEnv(ctx, e)
	if steps.IsAbsent(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return f.get("KUBECONFIG")
}

// commandFolders are where root's commands are that the hooks run.
var commandFolders = []string{
	"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin",
}

// pathFault says what is wrong with the PATH that the file gives upstream's hooks, which source it after the pre-hook
// has exported one. The bootstrap puts /usr/local/bin and /bin before it; set-k8s-creds.sh finds sudo by it alone
// (OSC/ondemand: hooks/k8s-bootstrap).
func (f envFile) pathFault(kubectl string) (fileFault, bool) {
	l, i, ok := f.setting("PATH")
	if !ok || l.odd != "" {
		return fileFault{}, false
	}
	line, offset := f.place(i)
	said := fileFault{line: line, column: offset + 1}
	folders := strings.Split(l.value, ":")
	known := append([]string{path.Dir(kubectl)}, commandFolders...)
	for _, folder := range folders {
		if !slices.Contains(known, folder) {
			said.says = "PATH replaces the pre-hook's and contains " + shownWord(folder) + ", so root runs commands from there"
			return said, true
		}
	}
	if !slices.Contains(folders, "/usr/bin") && !slices.Contains(folders, "/bin") {
		said.says = "PATH replaces the pre-hook's and has no /usr/bin, so upstream's hooks do not find sudo"
		return said, true
	}
	if at := path.Dir(kubectl); !slices.Contains(append(folders, "/usr/local/bin", "/bin"), at) {
		said.says = "PATH replaces the pre-hook's and has no " + at + ", so upstream's hooks do not find kubectl"
		return said, true
	}
	return fileFault{}, false
}

// withoutSetting is the fix that removes a key that does not belong into hook.env.
func (f envFile) withoutSetting(key string) string {
	_, i, _ := f.setting(key)
	line, _ := f.place(i)
	n := 0
	for j := range f.lines {
		if at, _ := f.place(j); at == line {
			n++
		}
	}
	if n > 1 { // other settings are on that line
		return onWebNode(fmt.Sprintf("vi +%d %s    # remove %s", line, hookEnv, key))
	}
	return onWebNode(`sed -i -E '/^[[:blank:]]*(export[[:blank:]]+)?` + key + `=/d' ` + hookEnv)
}
