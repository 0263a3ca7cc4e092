package ondemand

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"carrick/steps"
)

// envKubeconfig returns the value of KUBECONFIG in hook.env, or "" if it is not set. This value overrides the
// KUBECONFIG that the pre-hook exports, because upstream's bootstrap sources hook.env later.
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

// commandFolders lists the directories of the system commands that the hooks run as root.
var commandFolders = []string{
	"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin",
}

// pathFault checks the setting PATH in hook.env. This setting overrides the pre-hook's PATH, because upstream's hooks
// source hook.env later. The bootstrap prepends /usr/local/bin and /bin, but set-k8s-creds.sh finds sudo only in the
// directories of the setting (OSC/ondemand: hooks/k8s-bootstrap).
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
			said.says = "PATH replaces the pre-hook's PATH and contains " + shownWord(folder) +
				", so root runs commands from this directory"
			return said, true
		}
	}
	if !slices.Contains(folders, "/usr/bin") && !slices.Contains(folders, "/bin") {
		said.says = "PATH replaces the pre-hook's PATH and has no /usr/bin, so upstream's hooks do not find sudo"
		return said, true
	}
	if at := path.Dir(kubectl); !slices.Contains(append(folders, "/usr/local/bin", "/bin"), at) {
		said.says = "PATH replaces the pre-hook's PATH and has no " + at + ", so upstream's hooks do not find kubectl"
		return said, true
	}
	return fileFault{}, false
}

// withoutSetting returns the fix that removes key from hook.env.
func (f envFile) withoutSetting(key string) string {
	_, i, _ := f.setting(key)
	line, _ := f.place(i)
	n := 0
	for j := range f.lines {
		if at, _ := f.place(j); at == line {
			n++
		}
	}
	if n > 1 { // the line has other settings
		return onWebNode(fmt.Sprintf("vi +%d %s    # remove %s", line, hookEnv, key))
	}
	return onWebNode(`sed -i -E '/^[[:blank:]]*(export[[:blank:]]+)?` + key + `=/d' ` + hookEnv)
}
