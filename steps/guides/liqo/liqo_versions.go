package liqo

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

// leastVersion is the first release that translates the addresses of every remapped network. v1.0.0 does so only if the
// peer's network equals the local network (liqotech/liqo@7228d3801:
// pkg/liqo-controller-manager/networking/external-network/remapping/cidr.go, forgeCIDRFirewallConfigurationSNATRules).
// renewsSince is the first release that renews the certificates of ResourceSlices (liqotech/liqo#3172).
const (
	leastVersion = "1.0.1"
	renewsSince  = "1.2.0"
)

func liqoVersions(ctx context.Context, e steps.Env) steps.Result {
	tag, err := e.Own.Text("liqo-version")
	if steps.IsAbsent(err) {
		return steps.Warned(
			err.Error()+", so Liqo's release is unknown", e.Kubectl()+" get deployments -A -o wide | grep liqo",
		)
	}
	if err != nil {
		return steps.Errored(err)
	}
	own, err := version.ParseSemantic(tag)
	if err != nil {
		return steps.Warned(
			fmt.Sprintf("image tag %q is not a release, so Liqo's features are unknown", clean.Text(tag)),
			upgrade(ctx, e, otherRelease(e)),
		)
	}
	if !own.AtLeast(version.MustParseSemantic(leastVersion)) {
		return steps.Warned(
			fmt.Sprintf(
				"Liqo is %s. If this release remaps a peer range that differs from the local range, pods cannot reach the "+
					"peer's pods",
				tag,
			),
			upgrade(ctx, e, renewsSince),
		)
	}
	other, err := e.Peer.Text("liqo-version")
	if err != nil && !steps.IsAbsent(err) {
		return steps.Errored(err)
	}
	peer, parsed := version.ParseSemantic(other)
	switch {
	case err == nil && parsed == nil && (own.Major() != peer.Major() || own.Minor() != peer.Minor()):
		fix := "upgrade Liqo on the " + e.PeerName() +
			", which is older. The check liqo-version of that side shows the command"
		if own.LessThan(peer) {
			fix = upgrade(ctx, e, peer.String())
		}
		return steps.Warned(
			fmt.Sprintf(
				"Liqo is %s, but the %s's release is %s. Upstream does not support peerings between different minor releases", tag,
				e.PeerName(),
				other,
			),
			fix,
		)
	case !own.AtLeast(version.MustParseSemantic(renewsSince)):
		return steps.Warned(
			fmt.Sprintf(
				"Liqo is %s. Before %s, certificates of ResourceSlices are not renewed and expire after a year", tag, renewsSince,
			),
			upgrade(ctx, e, renewsSince),
		)
	case err != nil:
		return steps.Passed("Liqo is %s; the %s's release is not known yet", tag, e.PeerName())
	case parsed != nil:
		return steps.Passed("Liqo is %s; the %s's tag %q is not a release", tag, e.PeerName(), clean.Text(other))
	}
	return steps.Passed("Liqo is %s; the %s's release is %s", tag, e.PeerName(), other)
}

const liqoRepository = "https://helm.liqo.io"

// release returns the name and namespace of Liqo's Helm release, both quoted for the shell.
func release(ctx context.Context, e steps.Env) (name, namespace string) {
	name, namespace = "liqo", usualNamespace
	if d, err := controllerManager(ctx, e); err == nil {
		name, namespace = cmp.Or(d.Annotations["meta.helm.sh/release-name"], name), d.Namespace
	}
	return steps.Quoted(name), steps.Quoted(namespace)
}

// upgrade returns the commands that upgrade Liqo. Helm does not update CRDs, so the commands
// apply them first.
func upgrade(ctx context.Context, e steps.Env, to string) string {
	name, ns := release(ctx, e)
	return fmt.Sprintf(
		"helm show crds liqo --repo %s --version %s | %s apply --server-side --force-conflicts -f - && %s upgrade %s liqo "+
			"--repo %s --version %s -n %s --reset-then-reuse-values",
		liqoRepository, to, e.Kubectl(), e.Helm(), name, liqoRepository, to, ns,
	)
}

// otherRelease returns the other side's Liqo version. If that version is unknown or not a release, it returns
// renewsSince.
func otherRelease(e steps.Env) string {
	if tag, err := e.Peer.Text("liqo-version"); err == nil {
		if v, err := version.ParseSemantic(tag); err == nil {
			return v.String()
		}
	}
	return renewsSince
}

// chartAgain returns the Helm command that recreates missing objects of the installed chart. The command keeps the
// chart's values.
func chartAgain(ctx context.Context, e steps.Env) string {
	name, ns := release(ctx, e)
	out := fmt.Sprintf("%s upgrade %s liqo --repo %s -n %s --reuse-values", e.Helm(), name, liqoRepository, ns)
	if tag, err := e.Own.Text("liqo-version"); err == nil {
		out += " --version " + steps.Quoted(tag)
	}
	return out
}

// withValue returns the Helm command that changes a value of the installed chart.
func withValue(ctx context.Context, e steps.Env, set string) string {
	return chartAgain(ctx, e) + " --set " + steps.Quoted(set)
}

func modulesOn(ctx context.Context, e steps.Env) steps.Result {
	need := []string{"authentication", "offloading"}
	if joins(e) {
		need = append(need, "networking")
	}
	var off []string
	for _, name := range need {
		on, err := module(ctx, e, name)
		if err != nil {
			return steps.Errored(err)
		}
		if !on {
			off = append(off, name)
		}
	}
	switch {
	case len(off) == 0:
		return steps.Passed("%s", check.OrNone(need))
	case len(off) == 1 && off[0] == "networking":
		return steps.Failed("Liqo's networking module is disabled", withValue(ctx, e, "networking.enabled=true")+
			"    # or offload without connecting the networks: set network.enabled: false under answers in "+e.LinkFile())
	}
	return steps.Failed("Liqo's required modules are disabled: "+check.OrNone(off),
		withValue(ctx, e, off[0]+".enabled=true"))
}
