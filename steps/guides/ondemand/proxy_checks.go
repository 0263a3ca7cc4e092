package ondemand

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/cluster/host"
	"carrick/cluster/probe"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/check"
)

const proxySource = "OSC/ondemand: ood-portal-generator/share/ood_portal_example.yml, mod_ood_proxy/lib/node_proxy.lua"

func proxyChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "node-uris", Title: "The portal proxies users to the nodes", On: steps.Local, FixedBy: "portal",
			Needs: []string{"portal-file"},
			Why: "Apps open at /node/NODE/PORT or /rnode/NODE/PORT. Without node_uri and rnode_uri the portal does not serve " +
				"these paths.",
			References: []string{proxySource}, Run: nodeURIs,
		},
		{
			Name: "host-regex", Title: "The portal's host_regex matches the cluster's nodes", On: steps.Local,
			Needs: []string{"portal-file"},
			Why: "The portal proxies only to hosts that match host_regex. The dashboard uses the reverse DNS name of a node's " +
				"address, or the address.",
			References: []string{proxySource, "OSC/ood_core: lib/ood_core/job/adapters/kubernetes/helper.rb"}, Run: hostRegex,
		},
		{
			Name: "node-port", Title: "The web node reaches a user's app on a node", On: steps.Local, From: "this machine",
			Why: "The portal reaches pods through NodePort Services. If a firewall blocks the nodes' ports " +
				"30000-32767, apps start but never open.",
			References: []string{"OSC/ood_core: lib/ood_core/job/adapters/kubernetes/templates/pod.yml.erb"},
			Run:        proxyNodePort,
		},
	}
}

func nodeURIs(ctx context.Context, e steps.Env) steps.Result {
	_, values, err := openPortal(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	var lacks []string
	for _, key := range []string{"node_uri", "rnode_uri"} {
		if portalUnset(values[key]) {
			lacks = append(lacks, key)
		}
	}
	if len(lacks) > 0 {
		return steps.Undone(strings.Join(lacks, " and ") + " not set in " + portalFile)
	}
	return steps.Passed("%v and %v", values["node_uri"], values["rnode_uri"])
}

func hostRegex(ctx context.Context, e steps.Env) steps.Result {
	_, values, err := openPortal(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	text := "[^/]+"
	if v, ok := values["host_regex"].(string); ok && v != "" {
		text = v
	}
	names, err := e.Peer.List("node-names")
	if err != nil {
		return steps.Errored(err)
	}
	addresses, err := e.Peer.List("node-addresses")
	if err != nil {
		return steps.Errored(err)
	}
	rx, err := regexp.Compile("^(?:" + text + ")$")
	if err != nil {
		return steps.Skipped("carrick cannot evaluate host_regex %s: %s", shownWord(text), clean.Text(err.Error()))
	}
	var out []string
	for _, n := range slices.Concat(names, addresses) {
		if !rx.MatchString(n) {
			out = append(out, n)
		}
	}
	switch {
	case len(out) == len(names)+len(addresses):
		return steps.Failed(
			fmt.Sprintf("host_regex is %s, which matches no node name or address: %s", shownWord(text), shortList(out, ", ")),
			onWebNode(
				"vi "+portalFile+" && "+updatePortal+"    # to host_regex, append | and an expression that matches the nodes",
			),
		)
	case len(out) > 0:
		return steps.Warned(
			fmt.Sprintf("host_regex is %s, which does not match %s", shownWord(text), shortList(out, ", ")),
			"check which name the web node uses: getent hosts "+firstOf(addresses),
		)
	}
	return steps.Passed("%s matches all %d nodes", shownWord(text), len(names))
}

func firstOf(words []string) string {
	if len(words) == 0 {
		return "ADDRESS"
	}
	return words[0]
}

// userNodePorts returns up to three addresses of users' apps. An address is the IP address of a node and the node port
// of a user's Service.
func userNodePorts(ctx context.Context, e steps.Env) (any, error) {
	spaces, err := check.List[corev1.Namespace](
		ctx, e.Cluster, check.Namespaces, "", cluster.Selector{Labels: userLabel + "=" + userValue},
	)
	if err != nil {
		return nil, err
	}
	nodes, err := check.List[corev1.Node](ctx, e.Cluster, check.Nodes, "", cluster.Selector{})
	if err != nil {
		return nil, err
	}
	at := ""
	for _, n := range nodes {
		if own := check.InternalAddresses(n); at == "" && len(own) > 0 {
			at = own[0]
		}
	}
	out := []string{}
	for _, ns := range spaces {
		services, err := check.List[corev1.Service](ctx, e.Cluster, check.Services, ns.Name, cluster.Selector{})
		if err != nil {
			return nil, err
		}
		for _, s := range services {
			for _, p := range s.Spec.Ports {
				if p.NodePort != 0 && at != "" && len(out) < 3 {
					out = append(out, net.JoinHostPort(at, strconv.Itoa(int(p.NodePort))))
				}
			}
		}
		if len(out) >= 3 {
			break
		}
	}
	if len(out) == 0 {
		return nil, steps.Absent("no user's app has a NodePort: start an app in the portal, then check again")
	}
	return out, nil
}

func proxyNodePort(ctx context.Context, e steps.Env) steps.Result {
	ports, err := e.Peer.List("user-node-ports")
	if err != nil {
		return steps.Errored(err)
	}
	if e.Host.IsFolder() {
		r, _ := inFolder(
			host.ErrFolder, "timeout 5 bash -c '</dev/tcp/"+strings.Replace(ports[0], ":", "/", 1)+"' && echo open",
		)
		return r
	}
	var shut []string
	for _, at := range ports {
		_, err := tracked.Look(
			ctx, "tcp/"+at, 30*time.Second, func(ctx context.Context) (time.Duration, error) { return probe.TCP(ctx, at) },
		)
		if err != nil {
			shut = append(shut, at+": "+failure.Explain(err))
		}
	}
	if len(shut) > 0 {
		return steps.Failed(
			strings.Join(shut, "; "),
			"in the firewall, open ports 30000-32767 of the nodes to the web node, then: "+
				onWebNode("nc -vz "+strings.Replace(ports[0], ":", " ", 1)),
		)
	}
	return steps.Passed("%s", strings.Join(ports, ", "))
}
