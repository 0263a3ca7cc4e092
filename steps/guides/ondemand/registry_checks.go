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
			Name: "registry-file", Title: "the registry's login can be read as the kubelet does", On: steps.Local,
			When: usesRegistry, FixedBy: "registry-file",
			Why: "the hook puts the file into users' namespaces as it stands. The published page's base64 breaks a " +
				"long login into lines, which is no JSON any more, and pods fail to pull without a word of why",
			References: []string{page},
			Run:        registryReadable,
		},
		{
			Name: "registry-private", Title: "nobody but root may read the registry's file", On: steps.Local, When: usesRegistry,
			FixedBy: "registry-file", Needs: []string{"registry-file"},
			Why: "it holds a password. Users read it in their namespace all the same: who may log in to the web node " +
				"alone should not",
			References: []string{page},
			Run:        func(ctx context.Context, e steps.Env) steps.Result { return onlyRoots(ctx, e, registryAt(ctx, e)) },
		},
		{
			Name: "registry-login", Title: "the registry takes that login", On: steps.Local, From: "this machine",
			When: usesRegistry, Needs: []string{"registry-file"},
			Why: "a robot account that has ended, or a password with a letter too many, is seen only as " +
				"ImagePullBackOff in a user's namespace. Every user can read this login: it should be one that may only pull",
			References: []string{"distribution/distribution: docs/content/spec/auth/token.md", page},
			Run:        registryTakes,
		},
		{
			Name: "registry-hook", Title: "hook.env names the pull Secret and the registry's file, or neither", On: steps.Local,
			Why: "with a name alone the hook ends at a file that is not there, at the login of a user; with a file " +
				"alone it makes no Secret, and says nothing",
			References: []string{"OSC/ondemand: hooks/k8s-bootstrap/k8s-bootstrap-ondemand.sh", page},
			Run:        registryInHook,
		},
	}
}

// registryLogins reads the file that the hook uses.
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

// loginFor is the login for the registry that is answered.
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
		return steps.Undone("there is no " + at)
	case errors.Is(err, errWrapped):
		return steps.Failed(at+": "+err.Error(), e.ApplyStep("registry")+"; or encode it in one line: base64 -w0")
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
				"%s holds a login of %s, and none of %s", at, strings.Join(hosts, ", "),
				registryKey(e.Answers.Text("registry.host")),
			),
			"",
		)
	case l.User != e.Answers.Text("registry.user"):
		return steps.Failed(
			fmt.Sprintf("%s holds the login of %q, not of %q", at, clean.Text(l.User), e.Answers.Text("registry.user")), "",
		)
	case slices.Contains([]string{"admin", "root", "administrator"}, strings.ToLower(l.User)):
		return steps.Warned(
			fmt.Sprintf("%s holds the login of %q, which every user of the portal can read", at, l.User),
			"make a robot account at the registry that may only pull, and answer registry.user and registry.password with it",
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
		return steps.Skipped("%s holds no login of that registry", at)
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
	hand := "try it by hand: podman login " + steps.Quoted(host) + " -u " + steps.Quoted(l.User)
	switch {
	case errors.Is(err, probe.ErrLogin):
		return steps.Failed(
			failure.Explain(err),
			"make the robot account's password anew at the registry, then "+e.ApplyStep("registry")+
				" --secret registry.password=@FILE",
		)
	case errors.Is(err, probe.ErrElsewhere):
		return steps.Skipped("%s; carrick does not send it there: %s", failure.Explain(err), hand)
	case errors.Is(err, probe.ErrNoRegistry):
		return steps.Failed(
			failure.Explain(err), "answer registry.host as the names of its images begin, without a path; "+hand,
		)
	case errors.As(err, &untrusted):
		return steps.Failed(
			report.URL+" shows a certificate that is not trusted here: "+clean.Text(untrusted.Err.Error()),
			"answer registry.ca with its CA; the nodes of the cluster must trust it, too",
		)
	case err != nil:
		return steps.Errored(err)
	case report.Open:
		return steps.Warned(report.URL+" answers without a login: whether it takes this one can't be told", hand)
	}
	return steps.Passed(
		"%s takes %q, as seen from this machine; nodes of the cluster may see it differently", report.URL, clean.Text(l.User),
	)
}

func registryInHook(ctx context.Context, e steps.Env) steps.Result {
	in, err := registryInHookEnv(ctx, e)
	if errors.Is(err, fs.ErrNotExist) {
		return steps.Skipped("there is no %s yet", hookEnv)
	}
	if err != nil {
		return steps.Errored(err)
	}
	fix := e.ApplyStep("hooks")
	switch {
	case in.secret == "" && in.file == "" && usesRegistry(e):
		return steps.Skipped("%s names no registry yet: the step Hooks does that", hookEnv)
	case in.secret == "" && in.file == "":
		return steps.Passed("%s names neither", hookEnv)
	case in.secret == "":
		return steps.Failed(hookEnv+" names a registry's file and no pull Secret: IMAGE_PULL_SECRET is empty", fix)
	case in.file == "":
		return steps.Failed(
			hookEnv+" names the pull Secret "+clean.Text(in.secret)+
				" and no file: REGISTRY_DOCKER_CONFIG_JSON is empty, or as the package ships it",
			fix,
		)
	}
	there, err := fileExists(ctx, e, in.file)
	switch {
	case err != nil:
		return steps.Errored(err)
	case !there:
		return steps.Failed(hookEnv+" names "+clean.Text(in.file)+", which is not there", fix)
	}
	return steps.Passed("Secret %s of %s", clean.Text(in.secret), clean.Text(in.file))
}
