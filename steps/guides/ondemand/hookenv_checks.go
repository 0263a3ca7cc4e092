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
			Name: "hook-env", Title: "hook.env is there and edited", On: steps.Local, FixedBy: "hook-env",
			Why:        "the published page calls it hooks.env in three places: nothing reads a file of that name",
			References: []string{hookEnvSource}, Run: hookEnvExists,
		},
		{
			Name: "hook-env-private", Title: "only root can read hook.env", On: steps.Local, FixedBy: "hook-env",
			Why:        "the package installs it with mode 0644, and it holds the secret of the OIDC client",
			References: []string{hookEnvSource}, Run: hookEnvPrivate,
		},
		{
			Name: "hook-env-lines", Title: "both of hook.env's readers take each line for what it is", On: steps.Local,
			FixedBy: "hook-env",
			Why: "upstream's hook has bash source the file, and then exports what stands before the first = of each " +
				"line that does not begin with #. An indented comment ends it; with CR LF, true is not true. Nobody sees that: " +
				"the hook's output goes nowhere",
			References: []string{"OSC/ondemand: hooks/k8s-bootstrap/k8s-bootstrap-ondemand.sh"}, Run: hookEnvLines,
		},
		{
			Name: "hook-env-oidc", Title: "hook.env holds the OIDC client that is answered", On: steps.Local,
			FixedBy: "hook-env", Needs: []string{"hook-env"}, When: withOIDC,
			Why: "they go into each user's kubeconfig at login; kubectl renews its tokens with them. The example's " +
				"issuer is the address of the token endpoint, which is no issuer",
			References: []string{hookEnvSource, "OSC/ondemand: hooks/k8s-bootstrap/set-k8s-creds.sh"}, Run: hookEnvOIDC,
		},
		{
			Name: "allow-cidr", Title: "the web node and the nodes may reach users' pods", On: steps.Local, FixedBy: "hook-env",
			Needs: []string{"hook-env"},
			Why: "the network policy of each user's namespace lets in only this CIDR and the namespace itself. As " +
				"shipped it is 127.0.0.1/32: no app of any user can be opened. What comes by a NodePort carries the " +
				"address of a node",
			References: []string{"OSC/ondemand: hooks/k8s-bootstrap/yaml/network-policy.yaml"}, Run: allowedCIDR,
		},
		{
			Name: "no-psp", Title: "USE_POD_SECURITY_POLICY is false", On: steps.Local, FixedBy: "hook-env",
			Needs: []string{"hook-env"},
			Why: "upstream's hook then sets UID, which bash does not let anybody set, and ends before it has made " +
				"anything, whatever the cluster's version. Clusters since 1.25 have no such policies",
			References: []string{"OSC/ondemand: hooks/k8s-bootstrap/k8s-bootstrap-ondemand.sh"}, Run: noPSP,
		},
		{
			Name: "reaper-flag", Title: "USE_JOB_POD_REAPER is true where the reaper is used, and only there", On: steps.Local,
			FixedBy: "hook-env", Needs: []string{"hook-env"},
			Why: "only the word true makes the reaper's RoleBinding at login; without the reaper's ClusterRole that " +
				"binding is refused, and with it the user's namespace",
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
			wrongHookEnv+" was edited, and nothing reads it: the file is called hook.env",
			onWebNode("install -m 0600 -o root -g root "+wrongHookEnv+" "+hookEnv+" && rm "+wrongHookEnv),
		)
	case !there:
		return steps.Undone("there is no " + hookEnv)
	case f.unedited():
		return steps.Undone(hookEnv + " stands as the package ships it")
	case wrong:
		return steps.Warned(
			hookEnv+" is edited, and there is a "+wrongHookEnv+", which nothing reads",
			onWebNode("diff "+hookEnv+" "+wrongHookEnv+" ; rm "+wrongHookEnv),
		)
	}
	return steps.Passed("%s", hookEnv)
}

func hookEnvPrivate(ctx context.Context, e steps.Env) steps.Result {
	why, err := private(ctx, e, hookEnv)
	if err == nil && why == "" { // root's shell runs what is in it
		_, why, err = replaceable(e, hookEnv)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return steps.Skipped("there is no %s", hookEnv)
	case err != nil:
		return steps.Errored(err)
	case why != "":
		return steps.Failed(why, makePrivate(e, hookEnv))
	}
	return steps.Passed("mode 0600")
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
		return steps.Passed("%d lines", lines-1)
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

// mergeWindows puts the lines that end as on Windows into one fault before the others.
func mergeWindows(faults []fileFault) []fileFault {
	first := faults[slices.IndexFunc(faults, fileFault.ofWindows)]
	others := slices.DeleteFunc(slices.Clone(faults), fileFault.ofWindows)
	if more := len(faults) - len(others) - 1; more > 0 {
		first.says = fmt.Sprintf("%s; so do %d more", windowsLine, more)
	}
	return append([]fileFault{first}, others...)
}

// faultWords are faults in words, the first of many.
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
		wrong = append(wrong, "IDP_ISSUER_URL is "+shownWord(issuer)+", a token endpoint: the issuer is "+issuerMeant(issuer))
	case issuer != want:
		wrong = append(wrong, "IDP_ISSUER_URL is "+shownWord(issuer)+", not "+want)
	}
	fix := ""
	_, portal, _ := openPortal(ctx, e) // whether it can be read is for portal-file
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
			wrong, "CLIENT_ID is "+shownWord(id)+", and "+portalFile+" logs users in with client "+shownWord(client)+
				": a provider refreshes tokens only for the client that they were issued to",
		)
		fix = "answer oidc.client-id with " + shownWord(client) +
			" and oidc.client-secret with its secret, then: carrick apply " + e.LinkFile() + " --step hooks"
	}
	if secret := f.secret("CLIENT_SECRET"); secret.IsZero() || secret.Reveal() == envKeyOf("CLIENT_SECRET").ships {
		wrong = append(wrong, "CLIENT_SECRET is not set")
	}
	if len(wrong) > 0 {
		return steps.Failed(strings.Join(wrong, "; "), fix)
	}
	return steps.Passed("client %s of %s", id, issuer)
}

// needsClient reports whether the portal names a provider itself, and neither Dex, which has its own client, nor
// Apache's settings name the client (OpenIDC/mod_auth_openidc: src/cfg/check.c, which refuses a provider without
// OIDCClientID).
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
		return steps.Failed("NETWORK_POLICY_ALLOW_CIDR is not set: the network policy can't be made, and the hook ends", "")
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return steps.Failed("NETWORK_POLICY_ALLOW_CIDR is "+shownWord(text)+", which is not one CIDR", "")
	}
	nodes, nodeErr := e.Peer.List("node-addresses")
	web, webErr := e.Own.List("web-node-addresses")
	if p.Addr().IsLoopback() && !allLoopback(slices.Concat(nodes, web)) {
		return steps.Failed("NETWORK_POLICY_ALLOW_CIDR is "+text+": nobody but the pod itself comes from there", "")
	}
	var out []string
	for _, a := range slices.Concat(web, nodes) {
		addr, err := netip.ParseAddr(a)
		if err == nil && (addr.IsLoopback() || addr.Unmap().Is4() != p.Addr().Is4()) {
			continue // pods see no loopback of another machine; one CIDR holds one family
		}
		if err != nil || !p.Contains(addr.Unmap()) {
			out = append(out, a)
		}
	}
	if len(out) > 0 {
		return steps.Failed(
			fmt.Sprintf("NETWORK_POLICY_ALLOW_CIDR is %s, which leaves out %s", text, shortList(out, ", ")), "",
		)
	}
	switch {
	case nodeErr != nil:
		return steps.Errored(nodeErr)
	case webErr != nil:
		return steps.Skipped(
			"%s holds the nodes (%d addresses); whether it holds the web node's can't be told here; look there: ip route get %s",
			text, len(nodes), apiHost(e),
		)
	}
	return steps.Passed(
		"%s holds the web node (%s) and the nodes (%d addresses)", text, strings.Join(web, ", "), len(nodes),
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
		return steps.Failed("it is true: the hook ends before it has made anything", "")
	case v != "" && v != "false":
		return steps.Warned("it is "+shownWord(v)+", which upstream takes for false", "")
	}
	return steps.Passed("the levels of pod security take its place")
}

func reaperFlag(ctx context.Context, e steps.Env) steps.Result {
	f, err := openHookEnv(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	v, err := f.get("USE_JOB_POD_REAPER")
	used := e.Answers.Bool("walltime.use")
	switch {
	case err != nil:
		return steps.Errored(err)
	case used && v != "true":
		return steps.Failed("it is "+shownWord(v)+", and only the word true counts: the reaper gets no right to any pod", "")
	case !used && v == "true":
		return steps.Failed(
			"it is true, and walltime.use is answered with no: the hook makes a binding to a ClusterRole that need not be there",
			"",
		)
	}
	return steps.Passed("it is %s", shownWord(v))
}
