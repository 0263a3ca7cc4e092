package ondemand

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/cluster/masked"
	"carrick/cluster/probe"
	"carrick/cluster/tracked"
	"carrick/steps"
)

func registryChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "registry-file", Title: "The kubelet can read the registry login", On: steps.Local,
			When: usesRegistry, FixedBy: "registry-file",
			Why: "The hook copies the file unchanged. The published guide's base64 wraps a long login, which is invalid JSON, " +
				"and pods silently fail to pull.",
			References: []string{page},
			Run:        registryReadable,
		},
		{
			Name: "registry-private", Title: "Only root can read the registry file", On: steps.Local, When: usesRegistry,
			FixedBy: "registry-file", Needs: []string{"registry-file"},
			Why: "The file contains a password. Users can read it in their namespace, but other accounts on the web " +
				"node must not.",
			References: []string{page},
			Run:        func(ctx context.Context, e steps.Env) steps.Result { return onlyRoots(ctx, e, registryAt(ctx, e)) },
		},
		{
			Name: "registry-login", Title: "The registry accepts the login", On: steps.Local, From: "this machine",
			When: usesRegistry, Needs: []string{"registry-file"},
			Why: "An expired account or a wrong password shows only as ImagePullBackOff. Every user can read this " +
				"login, so it should allow only pulls.",
			References: []string{"distribution/distribution: docs/content/spec/auth/token.md", page},
			Run:        registryTakes,
		},
		{
			Name: "registry-hook", Title: "Pull Secret and registry file are both set, or neither is", On: steps.Local,
			Why: "With only the Secret name, the hook fails at a user's login because the file is missing. With only the " +
				"file, the hook silently creates no Secret.",
			References: []string{"OSC/ondemand: hooks/k8s-bootstrap/k8s-bootstrap-ondemand.sh", page},
			Run:        registryInHook,
		},
	}
}

// registryLogins returns all logins in the registry file that the hook uses, and the path of that file.
func registryLogins(ctx context.Context, e steps.Env) (all []registryLogin, at string, err error) {
	at = registryAt(ctx, e)
	data, err := e.Host.Read(ctx, at)
	if err != nil {
		return nil, at, err
	}
	all, err = decodeRegistry(data)
	if err != nil {
		return nil, at, brokenRegistryError{err}
	}
	return all, at, nil
}

type brokenRegistryError struct{ error }

func (e brokenRegistryError) Unwrap() error { return e.error }

func loginFor(e steps.Env, all []registryLogin) (registryLogin, bool) {
	want := registryKey(e.Answers.Text("registry.host"))
	i := slices.IndexFunc(all, func(l registryLogin) bool { return l.Host == want })
	if i < 0 {
		return registryLogin{}, false
	}
	return all[i], true
}

func registryReadable(ctx context.Context, e steps.Env) steps.Result {
	all, at, err := registryLogins(ctx, e)
	broken := brokenRegistryError{}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return steps.Undone(at + " does not exist")
	case errors.Is(err, errWrapped):
		return steps.Failed(at+": "+err.Error(), e.ApplyStep("registry")+"; or encode the login in one line: base64 -w0")
	case errors.As(err, &broken):
		return steps.Failed(at+": "+err.Error(), "")
	case err != nil:
		return steps.Errored(err)
	}
	l, ok := loginFor(e, all)
	var hosts []string
	for _, l := range all {
		hosts = append(hosts, clean.Text(l.Host))
	}
	switch {
	case !ok:
		return steps.Failed(
			fmt.Sprintf(
				"%s contains a login for %s, not for %s", at, strings.Join(hosts, ", "),
				registryKey(e.Answers.Text("registry.host")),
			),
			"",
		)
	case l.User != e.Answers.Text("registry.user"):
		return steps.Failed(
			fmt.Sprintf("%s contains the login of %q, not of %q", at, clean.Text(l.User), e.Answers.Text("registry.user")), "",
		)
	case slices.Contains([]string{"admin", "root", "administrator"}, strings.ToLower(l.User)):
		return steps.Warned(
			fmt.Sprintf("%s contains the login of %q, which every user of the portal can read", at, l.User),
			"create a robot account at the registry that can only pull, and set registry.user and registry.password "+
				"to its login",
		)
	}
	return steps.Passed("%s: %q at %s", at, clean.Text(l.User), l.Host)
}

func registryTakes(ctx context.Context, e steps.Env) steps.Result {
	all, at, err := registryLogins(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	l, ok := loginFor(e, all)
	if !ok {
		return steps.Skipped("%s contains no login for the registry in registry.host", at)
	}
	host := e.Answers.Text("registry.host")
	try := probe.RegistryLogin{Registry: host, User: l.User, Password: l.Password.Reveal()}
	if ca := e.Answers.Text("registry.ca"); ca != "" {
		if try.Roots, err = e.Host.Read(ctx, ca); err != nil {
			return steps.Errored(err)
		}
	}
	key := "registry/" + host + "/" + l.User + "/" + l.Password.Hash() + "/" + masked.New(string(try.Roots)).Hash()
	report, err := tracked.Look(ctx, key, 5*time.Minute, try.Try)
	untrusted := (*tls.CertificateVerificationError)(nil)
	hand := "try the login manually: podman login " + steps.Quoted(host) + " -u " + steps.Quoted(l.User)
	switch {
	case errors.Is(err, probe.ErrLogin):
		return steps.Failed(
			failure.Explain(err),
			"reset the robot account's password at the registry, then "+e.ApplyStep("registry")+
				" --secret registry.password=@FILE",
		)
	case errors.Is(err, probe.ErrElsewhere):
		return steps.Skipped("%s, and carrick does not send the login to that host; %s", failure.Explain(err), hand)
	case errors.Is(err, probe.ErrNoRegistry):
		return steps.Failed(
			failure.Explain(err), "set registry.host to the host at the start of the image names, without a path; "+hand,
		)
	case errors.As(err, &untrusted):
		return steps.Failed(
			report.URL+" presents a certificate that this machine does not trust: "+clean.Text(untrusted.Err.Error()),
			"set registry.ca to a file with the registry's CA; the cluster's nodes must trust that CA as well",
		)
	case err != nil:
		return steps.Errored(err)
	case report.Open:
		return steps.Warned(report.URL+" responds without a login, so this login cannot be verified", hand)
	}
	return steps.Passed(
		"%s accepts %q from this machine; results on the cluster's nodes can differ", report.URL, clean.Text(l.User),
	)
}

func registryInHook(ctx context.Context, e steps.Env) steps.Result {
	in, err := registryInHookEnv(ctx, e)
	if errors.Is(err, fs.ErrNotExist) {
		return steps.Skipped("%s does not exist yet", hookEnv)
	}
	if err != nil {
		return steps.Errored(err)
	}
	fix := e.ApplyStep("hooks")
	switch {
	case in.secret == "" && in.file == "" && usesRegistry(e):
		return steps.Skipped("%s names no registry yet; the step Hooks adds the registry", hookEnv)
	case in.secret == "" && in.file == "":
		return steps.Passed("%s sets neither a pull Secret nor a registry file", hookEnv)
	case in.secret == "":
		return steps.Failed(hookEnv+" names a registry file but no pull Secret: IMAGE_PULL_SECRET is empty", fix)
	case in.file == "":
		return steps.Failed(
			hookEnv+" names the pull Secret "+clean.Text(in.secret)+
				" but no file: REGISTRY_DOCKER_CONFIG_JSON is empty or has the package's default",
			fix,
		)
	}
	there, err := fileExists(ctx, e, in.file)
	switch {
	case err != nil:
		return steps.Errored(err)
	case !there:
		return steps.Failed(hookEnv+" names "+clean.Text(in.file)+", which does not exist", fix)
	}
	return steps.Passed("Secret %s from %s", clean.Text(in.secret), clean.Text(in.file))
}
