package ondemand

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// hookScript contains the settings of the hook that carrick writes. The portal runs this hook as root when a user's web
// server starts.
type hookScript struct {
	kubeconfig string // root's kubeconfig
	kubectl    string // path of kubectl; upstream's hooks run kubectl by name
	level      string // Pod Security level of users' namespaces
	creds      bool   // write users' OIDC tokens into their kubeconfigs
	also       string // the site's existing hook, which runs first; "" if there is none
}

var (
	scriptPath = regexp.MustCompile(`^(/[A-Za-z0-9._+-]+)+$`)
	podLevels  = regexp.MustCompile(`^(restricted|baseline|privileged)$`)
)

// Upstream's hooks. Open OnDemand's package owns them, so the script calls them instead of copying them.
const (
	bootstrapHook = hooksFolder + "/k8s-bootstrap-ondemand.sh"
	credsHook     = hooksFolder + "/set-k8s-creds.sh"
)

// alsoMark starts the line of the script that contains the path of the site's existing hook. alsoOf reads this line.
const alsoMark = "also="

// text returns an error for values that the shell could split or expand.
func (h hookScript) text() (string, error) {
	for _, p := range []string{h.kubeconfig, h.kubectl, h.also} {
		if p != "" && (!scriptPath.MatchString(p) || path.Clean(p) != p) {
			return "", fmt.Errorf(
				"%s cannot be used in the hook: use an absolute path of letters, digits, slashes and ._+-", shownWord(p),
			)
		}
	}
	if !podLevels.MatchString(h.level) {
		return "", fmt.Errorf("%s is not a Pod Security level: use restricted, baseline or privileged", shownWord(h.level))
	}
	var b strings.Builder
	b.WriteString(scriptHead)
	if h.also != "" {
		fmt.Fprintf(&b, scriptAlso, h.also)
	}
	folders := "/usr/local/bin:/usr/bin:/bin"
	if at := path.Dir(h.kubectl); at != "/usr/local/bin" {
		folders = at + ":" + folders
	}
	fmt.Fprintf(&b, scriptBootstrap, h.kubeconfig, folders, bootstrapHook, hookEnv, h.level)
	if h.creds {
		fmt.Fprintf(&b, scriptCreds, credsHook)
	}
	return b.String(), nil
}

const scriptHead = `#!/bin/bash
# Open OnDemand runs this as root before a user's web server starts. What it
# prints goes nowhere but to syslog, under the tag ood_nginx_stage.
# Written by carrick, which overwrites changes: put yours into another hook.

given=("$@")
user=
while [ "$#" -gt 0 ]; do
  case "$1" in
    --user) user="${2:-}"; shift ;;
    --user=*) user="${1#--user=}" ;;
  esac
  shift
done
if [ -z "$user" ]; then
  echo "k8s-pre-hook: there is no --user NAME" >&2
  exit 1
fi
`

const scriptAlso = `
# The hook that ran here before.
` + alsoMark + `%s
"$also" "${given[@]}" || echo "k8s-pre-hook: $also ended with $?" >&2
`

const scriptBootstrap = `
# Root's kubeconfig: the ServiceAccount ondemand and nothing else.
export KUBECONFIG=%s
export PATH=%s
hook_env=%[4]s

# The user's namespace, network policy and role bindings.
/bin/bash %[3]s "$user" "$hook_env" || exit 1

# How strict the cluster is with the user's pods. Upstream's hook knows nothing of
# this label, and leaves it alone.
prefix=$(. "$hook_env" && printf %%s "${NAMESPACE_PREFIX:-}") || exit 1
kubectl label --overwrite namespace "$prefix$user" \
  pod-security.kubernetes.io/enforce=%[5]s \
  pod-security.kubernetes.io/enforce-version=latest \
  pod-security.kubernetes.io/warn=restricted || exit 1
`

const scriptCreds = `
# The tokens of the user's login go into the user's own kubeconfig, not into root's.
unset KUBECONFIG
/bin/bash %s "$user" "$hook_env" || exit 1
`

// alsoOf returns the path of the site's existing hook from script, which carrick wrote. It returns "" if script runs no
// other hook.
func alsoOf(script string) string {
	for _, l := range strings.Split(script, "\n") {
		if p, ok := strings.CutPrefix(l, alsoMark); ok {
			return p
		}
	}
	return ""
}
