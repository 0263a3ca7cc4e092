package ondemand

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"

	"carrick/steps"
)

const hookEnvSource = "OSC/ondemand: hooks/hook.env.example, packaging/rpm/ondemand.spec"

func hookEnvChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "hook-env", Title: "hook.env exists and has been edited", On: steps.Local, FixedBy: "hook-env",
			Why: "The published guide calls the file hooks.env in three places, but no program reads a file " +
				"of that name.",
			References: []string{hookEnvSource}, Run: hookEnvExists,
		},
		{
			Name: "hook-env-private", Title: "Only root can read hook.env", On: steps.Local, FixedBy: "hook-env",
			Why:        "The package installs hook.env with mode 0644, but the file contains the secret of the OIDC client.",
			References: []string{hookEnvSource}, Run: hookEnvPrivate,
		},
		{
			Name: "hook-env-lines", Title: "Upstream's hook can read every line of hook.env", On: steps.Local,
			FixedBy: "hook-env",
			Why: "The hook fails at an indented comment, and a CR LF line ending changes the value true. No error " +
				"shows, because the hook's output is discarded.",
			References: []string{"OSC/ondemand: hooks/k8s-bootstrap/k8s-bootstrap-ondemand.sh"}, Run: hookEnvLines,
		},
		{
			Name: "hook-env-oidc", Title: "hook.env contains the configured OIDC client", On: steps.Local,
			FixedBy: "hook-env", Needs: []string{"hook-env"}, When: withOIDC,
			Why: "The hook writes the client into each user's kubeconfig, and kubectl uses it to renew tokens. The " +
				"example's issuer is a token endpoint, not an issuer.",
			References: []string{hookEnvSource, "OSC/ondemand: hooks/k8s-bootstrap/set-k8s-creds.sh"}, Run: hookEnvOIDC,
		},
		{
			Name: "allow-cidr", Title: "The web node and the nodes can reach users' pods", On: steps.Local, FixedBy: "hook-env",
			Needs: []string{"hook-env"},
			Why: "Users' network policies allow only this CIDR and the user's namespace. NodePort traffic has node " +
				"addresses, so the shipped 127.0.0.1/32 blocks every app.",
			References: []string{"OSC/ondemand: hooks/k8s-bootstrap/yaml/network-policy.yaml"}, Run: allowedCIDR,
		},
		{
			Name: "psp-disabled", Title: "USE_POD_SECURITY_POLICY is false", On: steps.Local, FixedBy: "hook-env",
			Needs: []string{"hook-env"},
			Why: "If it is true, upstream's hook assigns bash's read-only UID and fails before it creates anything. " +
				"Kubernetes removed PodSecurityPolicy in 1.25.",
			References: []string{"OSC/ondemand: hooks/k8s-bootstrap/k8s-bootstrap-ondemand.sh"}, Run: noPSP,
		},
		{
			Name: "reaper-flag", Title: "USE_JOB_POD_REAPER matches walltime.enabled", On: steps.Local,
			FixedBy: "hook-env", Needs: []string{"hook-env"},
			Why: "Only the value true creates the reaper's RoleBinding at login. Without the reaper's ClusterRole, the " +
				"binding and the user's namespace are not created.",
			References: []string{"OSC/ondemand: hooks/k8s-bootstrap/yaml/job-pod-reaper.yaml"}, Run: reaperFlag,
		},
	}
}

func hookEnvExists(ctx context.Context, e steps.Env) steps.Result {
	f, err := openHookEnv(ctx, e)
	there := err == nil
	if err != nil && !steps.IsAbsent(err) {
		return steps.Errored(err)
	}
	wrong, err := fileExists(ctx, e, wrongHookEnv)
	switch {
	case err != nil:
		return steps.Errored(err)
	case wrong && (!there || f.unedited()):
		return steps.Failed(
			wrongHookEnv+" is edited, but no program reads it: the file must be named hook.env",
			onWebNode("install -m 0600 -o root -g root "+wrongHookEnv+" "+hookEnv+" && rm "+wrongHookEnv),
		)
	case !there:
		return steps.Undone(hookEnv + " does not exist")
	case f.unedited():
		return steps.Undone(hookEnv + " still has the package's example values")
	case wrong:
		return steps.Warned(
			hookEnv+" is edited, but no program reads "+wrongHookEnv+", which also exists",
			onWebNode("diff "+hookEnv+" "+wrongHookEnv+" ; rm "+wrongHookEnv),
		)
	}
	return steps.Passed("%s", hookEnv)
}

func hookEnvPrivate(ctx context.Context, e steps.Env) steps.Result {
	why, err := private(ctx, e, hookEnv)
	if err == nil && why == "" { // root's shell runs the file, so users must not be able to replace it
		_, why, err = replaceable(e, hookEnv)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return steps.Skipped("%s does not exist", hookEnv)
	case err != nil:
		return steps.Errored(err)
	case why != "":
		return steps.Failed(why, makePrivate(e, hookEnv))
	}
	return steps.Passed("hook.env has mode 0600")
}

func hookEnvLines(ctx context.Context, e steps.Env) steps.Result {
	f, err := openHookEnv(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	faults := f.lint()
	pathed, is := f.pathFault(kubectlPath(e))
	if is {
		faults = append([]fileFault{pathed}, faults...)
	}
	if len(faults) == 0 {
		lines, _ := f.place(len(f.lines))
		return steps.Passed("all %d lines are readable", lines-1)
	}
	hard := slices.ContainsFunc(faults, func(x fileFault) bool { return x.about == syntax })
	fix := onWebNode(fmt.Sprintf("vi +%d %s", faults[0].line, hookEnv))
	if is {
		fix = f.withoutSetting("PATH")
	} else if slices.ContainsFunc(faults, fileFault.ofWindows) {
		faults = mergeWindows(faults)
		fix = onWebNode(`sed -i 's/\r$//' ` + hookEnv)
	}
	if !hard {
		return steps.Warned(hookEnv+" "+faultWords(faults), fix)
	}
	return steps.Failed(hookEnv+" "+faultWords(faults), fix)
}

// mergeWindows combines all faults for Windows line endings into one fault and puts it first.
func mergeWindows(faults []fileFault) []fileFault {
	first := faults[slices.IndexFunc(faults, fileFault.ofWindows)]
	others := slices.DeleteFunc(slices.Clone(faults), fileFault.ofWindows)
	if more := len(faults) - len(others) - 1; more > 0 {
		first.says = fmt.Sprintf("%s (and %d more lines)", windowsLine, more)
	}
	return append([]fileFault{first}, others...)
}

// faultWords formats faults for a finding. It shortens a long list.
func faultWords(faults []fileFault) string {
	var out []string
	for _, f := range faults {
		out = append(out, f.String())
	}
	return shortList(out, "; ")
}

func hookEnvOIDC(ctx context.Context, e steps.Env) steps.Result {
	f, err := openHookEnv(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	issuer, err1 := f.get("IDP_ISSUER_URL")
	id, err2 := f.get("CLIENT_ID")
	_, err3 := f.get("CLIENT_SECRET")
	if err := errors.Join(err1, err2, err3); err != nil {
		return steps.Errored(err)
	}
	var wrong []string
	switch want := e.Answers.Text("oidc.issuer"); {
	case issuer == "":
		wrong = append(wrong, "IDP_ISSUER_URL is not set")
	case strings.HasSuffix(strings.TrimSuffix(issuer, "/"), "/token"):
		wrong = append(wrong, "IDP_ISSUER_URL is "+shownWord(issuer)+", a token endpoint. The issuer is "+issuerMeant(issuer))
	case issuer != want:
		wrong = append(wrong, "IDP_ISSUER_URL is "+shownWord(issuer)+", not "+want)
	}
	fix := ""
	_, portal, _ := openPortal(ctx, e) // the check portal-file reports the error
	client, _ := portal["oidc_client_id"].(string)
	switch want := e.Answers.Text("oidc.client-id"); {
	case id == envKeyOf("CLIENT_ID").ships || id != want:
		wrong = append(wrong, "CLIENT_ID is "+shownWord(id)+", not "+want)
	case client == "" && needsClient(portal):
		wrong = append(
			wrong, portalFile+" has no oidc_client_id: Apache does not start with oidc_provider_metadata_url alone",
		)
		fix = "write oidc_client_id: " + want + " into " + portalFile
	case client != "" && client != id:
		wrong = append(
			wrong, "CLIENT_ID is "+shownWord(id)+", but "+portalFile+" sets oidc_client_id to "+shownWord(client)+
				". A provider refreshes a token only for the client to which it issued the token",
		)
		fix = "set oidc.client-id to " + shownWord(client) +
			" and oidc.client-secret to the client's secret, then run: carrick apply " + e.LinkFile() + " --step hooks"
	}
	if secret := f.secret("CLIENT_SECRET"); secret.IsZero() || secret.Reveal() == envKeyOf("CLIENT_SECRET").ships {
		wrong = append(wrong, "CLIENT_SECRET is not set")
	}
	if len(wrong) > 0 {
		return steps.Failed(strings.Join(wrong, "; "), fix)
	}
	return steps.Passed("client %s of %s", id, issuer)
}

// needsClient reports whether ood_portal.yml must set OIDC client credentials. Apache's OIDC module rejects a provider
// without OIDCClientID (OpenIDC/mod_auth_openidc: src/cfg/check.c). Dex has its own client.
func needsClient(portal map[string]any) bool {
	settings, _ := portal["oidc_settings"].(map[string]any)
	url, _ := portal["oidc_provider_metadata_url"].(string)
	return url != "" && portal["dex"] == nil && settings["OIDCClientID"] == nil
}

func allowedCIDR(ctx context.Context, e steps.Env) steps.Result {
	f, err := openHookEnv(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	text, err := f.get("NETWORK_POLICY_ALLOW_CIDR")
	if err != nil {
		return steps.Errored(err)
	}
	if text == "" {
		return steps.Failed(
			"NETWORK_POLICY_ALLOW_CIDR is not set, so the hook cannot create the network policy and fails", "",
		)
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return steps.Failed("NETWORK_POLICY_ALLOW_CIDR is "+shownWord(text)+", which is not a single CIDR", "")
	}
	nodes, nodeErr := e.Peer.List("node-addresses")
	web, webErr := e.Own.List("web-node-addresses")
	if p.Addr().IsLoopback() && !allLoopback(slices.Concat(nodes, web)) {
		return steps.Failed(
			"NETWORK_POLICY_ALLOW_CIDR is "+text+", a loopback range that matches no traffic from other machines", "",
		)
	}
	var out []string
	for _, a := range slices.Concat(web, nodes) {
		addr, err := netip.ParseAddr(a)
		if err == nil && (addr.IsLoopback() || addr.Unmap().Is4() != p.Addr().Is4()) {
			continue // no pod receives traffic from a loopback address, and a CIDR covers only one IP family
		}
		if err != nil || !p.Contains(addr.Unmap()) {
			out = append(out, a)
		}
	}
	if len(out) > 0 {
		return steps.Failed(
			fmt.Sprintf("NETWORK_POLICY_ALLOW_CIDR is %s, which does not contain %s", text, shortList(out, ", ")), "",
		)
	}
	switch {
	case nodeErr != nil:
		return steps.Errored(nodeErr)
	case webErr != nil:
		return steps.Skipped(
			"%s contains the nodes (%d addresses). The web node's address is unknown here. On the web node, run: ip "+
				"route get %s",
			text, len(nodes), apiHost(e),
		)
	}
	return steps.Passed(
		"%s contains the web node (%s) and the nodes (%d addresses)", text, strings.Join(web, ", "), len(nodes),
	)
}

func allLoopback(addresses []string) bool {
	return len(addresses) > 0 && !slices.ContainsFunc(addresses, func(a string) bool {
		addr, err := netip.ParseAddr(a)
		return err != nil || !addr.IsLoopback()
	})
}

func noPSP(ctx context.Context, e steps.Env) steps.Result {
	f, err := openHookEnv(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	v, err := f.get("USE_POD_SECURITY_POLICY")
	switch {
	case err != nil:
		return steps.Errored(err)
	case v == "true":
		return steps.Failed("USE_POD_SECURITY_POLICY is true, so the hook fails before it creates anything", "")
	case v != "" && v != "false":
		return steps.Warned("USE_POD_SECURITY_POLICY is "+shownWord(v)+", which upstream treats as false", "")
	}
	return steps.Passed("USE_POD_SECURITY_POLICY is not true")
}

func reaperFlag(ctx context.Context, e steps.Env) steps.Result {
	f, err := openHookEnv(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	v, err := f.get("USE_JOB_POD_REAPER")
	used := e.Answers.Bool("walltime.enabled")
	switch {
	case err != nil:
		return steps.Errored(err)
	case used && v != "true":
		return steps.Failed(
			"USE_JOB_POD_REAPER is "+shownWord(v)+
				", but upstream accepts only true, so the reaper gets no permission on any pod",
			"",
		)
	case !used && v == "true":
		return steps.Failed(
			"USE_JOB_POD_REAPER is true, but walltime.enabled is no: the hook binds a ClusterRole that might not exist",
			"",
		)
	}
	return steps.Passed("USE_JOB_POD_REAPER is %s", shownWord(v))
}
