package ondemand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

const versionFile = "/opt/ood/VERSION"

// oldest is the first supported release of Open OnDemand. Its adapter (ood_core v0.27.0) is the first that replaces
// dots and at signs in namespace names with dashes.
var oldest = version.MustParseGeneric("4.0.0")

func webNodeFacts() []steps.Fact {
	return []steps.Fact{
		{
			Name: "login-names", Title: "the users who can log in to the web node", On: steps.Local, Shared: true,
			Learn: loginNames,
		},
		{
			Name: "web-node-addresses", Title: "the web node's addresses as the cluster sees them", On: steps.Local,
			Shared: true, Learn: webNodeAddresses,
		},
	}
}

func webNodeChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "ondemand-version", Title: "Open OnDemand is 4.0 or newer", On: steps.Local,
			Why: "Before 4.0 the dashboard kept dots and at signs in namespace names, which Kubernetes rejects. Since 4.0 the " +
				"dashboard replaces them with dashes.",
			References: []string{"OSC/ood_core: CHANGELOG.md (0.27.0)", "OSC/ondemand: packaging/rpm/ondemand.spec"},
			Run:        ondemandVersion,
		},
		{
			Name: "running-as-root", Title: "On the web node, carrick runs as root", On: steps.Local,
			Why: "The files that carrick writes must belong to root, and only root can read hook.env and root's " +
				"kubeconfig.",
			References: []string{page},
			Run:        asRoot,
		},
		{
			Name: "portal-file", Title: "The portal's settings file can be parsed", On: steps.Local,
			Why: "update_ood_portal generates Apache's configuration from it. If the YAML is invalid, it stops and " +
				"keeps the old configuration.",
			References: []string{portalSource}, Run: portalFileReads,
		},
		{
			Name: "user-names", Title: "Usernames make valid namespace names", On: steps.Local,
			Why: "Namespace names allow a-z, 0-9 and -, at most 63 characters. For other usernames the hook cannot create the " +
				"namespace, and the login continues without it.",
			References: []string{
				"OSC/ood_core: pull request 859", "OSC/ondemand: hooks/k8s-bootstrap/k8s-bootstrap-ondemand.sh",
			},
			Run: userNames,
		},
	}
}

func ondemandVersion(ctx context.Context, e steps.Env) steps.Result {
	text, err := e.Host.Read(ctx, versionFile)
	if errors.Is(err, fs.ErrNotExist) {
		said := versionFile + " does not exist, so this is not a web node of Open OnDemand"
		if e.Host.IsFolder() {
			return steps.Failed(
				said, "copy the web node's file there: scp WEBNODE:"+versionFile+" "+steps.Quoted(e.Host.Root+versionFile),
			)
		}
		return steps.Failed(
			said,
			"run carrick on the web node, or install Open OnDemand there: "+
				"https://osc.github.io/ood-documentation/latest/installation.html",
		)
	}
	if err != nil {
		return steps.Errored(err)
	}
	said := strings.TrimSpace(string(text))
	have, err := version.ParseGeneric(strings.TrimPrefix(said, "v"))
	switch {
	case err != nil:
		return steps.Errored(fmt.Errorf("%s contains %s, which is not a version", versionFile, shownWord(said)))
	case have.LessThan(oldest):
		return steps.Failed(
			"Open OnDemand is "+have.String(),
			onWebNode(
				"upgrade Open OnDemand to 4.0 or newer: https://osc.github.io/ood-documentation/latest/release-notes.html",
			),
		)
	}
	return steps.Passed("Open OnDemand is %s", have)
}

func asRoot(_ context.Context, e steps.Env) steps.Result {
	switch {
	case e.Host.IsFolder():
		return steps.Skipped(
			"the directory %s represents the web node. Once carrick writes files there, %s/INSTALL lists how to copy them to "+
				"the web node, with owners, modes and commands",
			e.Host.Root, e.Host.Root,
		)
	case !e.Host.ByRoot():
		return steps.Failed(
			"carrick does not run as root, so it cannot read files that only root can read, and cannot write any files",
			"sudo carrick check "+e.LinkFile(),
		)
	}
	return steps.Passed("carrick runs as root")
}

// loginNames returns the login names from /etc/passwd and getent passwd. At sites without LDAP enumeration, getent
// omits LDAP users.
func loginNames(ctx context.Context, e steps.Env) (any, error) {
	text, err := e.Host.Read(ctx, passwdFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, steps.Absent("%s does not exist", passwdFile)
	}
	if err != nil {
		return nil, err
	}
	all := string(text)
	if more, err := check.CommandOutput(ctx, e.Host, 5*time.Minute, "getent", "passwd"); err == nil {
		all += "\n" + more
	}
	names := []string{}
	for _, u := range passwdUsers(all) {
		names = append(names, u.name)
	}
	return names, nil
}

// routed is the JSON output of ip route get.
type routed []struct {
	Source string `json:"prefsrc"`
}

// webNodeAddresses returns the source addresses that the web node uses to connect to the API server and to the nodes.
func webNodeAddresses(ctx context.Context, e steps.Env) (any, error) {
	if e.Host.IsFolder() {
		return nil, steps.Absent(
			"a directory represents the web node, so the web node's addresses are unknown; run on the web node: ip route get %s",
			apiHost(e),
		)
	}
	to := []string{}
	if nodes, err := e.Peer.List("node-addresses"); err == nil {
		to = append(to, nodes[:min(len(nodes), 20)]...)
	}
	host := apiHost(e)
	if _, err := netip.ParseAddr(host); err == nil {
		to = append(to, host)
	} else if text, err := check.CommandOutput(ctx, e.Host, 5*time.Minute, "getent", "ahosts", host); err == nil {
		to = append(to, firstWord(text))
	}
	out := []string{}
	for _, addr := range to {
		text, err := check.CommandOutput(ctx, e.Host, 5*time.Minute, "ip", "-j", "route", "get", addr)
		if err != nil {
			continue
		}
		var r routed
		if json.Unmarshal([]byte(text), &r) == nil && len(r) > 0 && r[0].Source != "" {
			out = append(out, r[0].Source)
		}
	}
	slices.Sort(out)
	if out = slices.Compact(out); len(out) == 0 {
		return nil, steps.Absent(
			"the web node's route to the cluster cannot be determined; run on the web node: ip route get %s", host,
		)
	}
	return out, nil
}

func firstWord(text string) string {
	if words := strings.Fields(text); len(words) > 0 {
		return words[0]
	}
	return ""
}

func apiHost(e steps.Env) string {
	u, err := url.Parse(e.Answers.Text("cluster.server"))
	if err != nil {
		return ""
	}
	return u.Hostname()
}

var clusterIDWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)

// checkClusterID validates cluster.id, the base name of the cluster file. Underscores are valid, because upstream's
// example contains them.
func checkClusterID(v string) error {
	if !clusterIDWord.MatchString(v) {
		return fmt.Errorf("%q cannot be the name of a cluster file: use letters, digits, dots, - and _", v)
	}
	return nil
}

var prefixWord = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*)$`)

func checkPrefix(v string) error {
	if v != "" && (!prefixWord.MatchString(v) || len(v) > 31) {
		return fmt.Errorf("%q cannot start the name of a namespace: use at most 31 lower-case letters, digits and -", v)
	}
	return nil
}

var userPrefixWord = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)

// checkUserPrefix validates users.username-prefix, which upstream's hook passes to kubectl on the command line.
func checkUserPrefix(v string) error {
	if !userPrefixWord.MatchString(v) {
		return fmt.Errorf(
			"%q is not a valid prefix for both upstream's hook and a kubeconfig: use letters, digits, dots, - and _", v,
		)
	}
	return nil
}

func portalFileReads(ctx context.Context, e steps.Env) steps.Result {
	text, err := e.Host.Read(ctx, portalFile)
	if errors.Is(err, fs.ErrNotExist) {
		return steps.Passed("%s does not exist, so upstream's defaults apply", portalFile)
	}
	if err != nil {
		return steps.Errored(err)
	}
	values, err := portalValues(string(text))
	if err != nil {
		return steps.Failed(clean.Text(err.Error()), onWebNode("vi "+portalFile))
	}
	return steps.Passed("%s sets %d keys", portalFile, len(values))
}
