package ondemand

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"carrick/cluster/masked"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/action"
)

func registry() steps.Step {
	return steps.Step{
		Name: "registry", Title: "Private registry",
		Why: "The hook puts the login of an image registry into each user's namespace, as a Secret that pods pull with. " +
			"Every user can read it there: give it a robot account that may pull what the apps need, and nothing else.",
		Ask: registryQuestions(),
		Actions: []steps.Action{{
			Name: "registry-file", Title: "Write the registry's login", On: steps.Local, When: usesRegistry,
			Doer: action.File{Path: registryFile, Mode: 0o600, Secret: true, Content: registryContent},
		}},
		Checks: registryChecks(),
	}
}

func registryQuestions() []steps.Question {
	return []steps.Question{
		{
			Key: "registry.use", Title: "Apps pull images from a private registry", Kind: steps.YesNo,
			Adopt:   adoptRegistryUse,
			Help:    "Yes, where the registry wants a login for the images of the apps.",
			Default: steps.Fixed(false, "public images need none"),
		},
		{
			Key: "registry.host", Title: "Address of the registry", Kind: steps.Text, NotFromPeer: true, When: usesRegistry,
			Check: probe.ValidRegistry,
			Adopt: adoptRegistryHost,
			Help:  "host or host:port, as the names of its images begin.",
		},
		{
			Key: "registry.user", Title: "User at the registry", Kind: steps.Text, When: usesRegistry, Check: validUser,
			Adopt: adoptRegistryUser,
			Help:  "A robot account that may only pull: every user of the portal can read its password.",
		},
		{
			Key: "registry.password", Title: "Password at the registry", Kind: steps.Text, Secret: true, Opt: true,
			When: usesRegistry,
			Help: "Needed once: where the file stands with that user, its password stays.",
		},
		{
			Key: "registry.secret", Title: "Name of the pull Secret in users' namespaces", Kind: steps.Name, When: usesRegistry,
			Adopt:   adoptRegistrySecret,
			Help:    "IMAGE_PULL_SECRET in hook.env.",
			Default: steps.Fixed("private-docker-registry", "the published page"),
		},
		{
			Key: "registry.ca", Title: "CA of the registry, on the web node", Kind: steps.Path, NotFromPeer: true, Opt: true,
			When: usesRegistry,
			Help: "PEM, for a registry whose certificate the system does not trust. The nodes of the cluster must trust it, " +
				"too. Empty: the system's.",
			Adopt: func(ctx context.Context, e steps.Env) (any, string, error) {
				for _, folder := range []string{"/etc/containers/certs.d", "/etc/docker/certs.d"} {
					at := path.Join(folder, e.Answers.Text("registry.host"), "ca.crt")
					if there, err := fileExists(ctx, e, at); err != nil || there {
						return at, "it stands there", err
					}
				}
				return nil, "", nil
			},
		},
	}
}

func usesRegistry(e steps.Env) bool { return e.Answers.Bool("registry.use") }

// registryContent is the file with the login that is answered. Where no password
// is given, one that stands there for that very user stays.
func registryContent(ctx context.Context, e steps.Env) (masked.Value, error) {
	want := registryLogin{
		Host: e.Answers.Text("registry.host"), User: e.Answers.Text("registry.user"),
		Password: e.Answers.Masked("registry.password"),
	}
	have, err := e.Host.Read(ctx, registryFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return masked.Value{}, err
	}
	if logins, broken := decodeRegistry(have); err == nil && broken == nil {
		for _, l := range logins {
			if l.Host == registryKey(want.Host) && l.User == want.User && (want.Password.IsZero() ||
				l.Password == want.Password) {
				return masked.New(string(have)), nil // with what else stands there
			}
		}
	}
	if want.Password.IsZero() {
		return masked.Value{}, steps.Absent("the password of the registry is not given: --secret registry.password=@FILE")
	}
	return encodeRegistry(want)
}

// inHookEnv is what hook.env says of the registry; both empty: it names none.
type inHookEnv struct{ secret, file string }

// registryInHookEnv reads that. The path that the package ships names no file, and
// counts as none.
func registryInHookEnv(ctx context.Context, e steps.Env) (inHookEnv, error) {
	data, err := e.Host.Read(ctx, hookEnv)
	if err != nil {
		return inHookEnv{}, err
	}
	f := parseEnv(string(data))
	var out inHookEnv
	if out.secret, err = f.get("IMAGE_PULL_SECRET"); err != nil {
		return out, err
	}
	if out.file, err = f.get("REGISTRY_DOCKER_CONFIG_JSON"); err != nil {
		return out, err
	}
	if k := envKeyOf("REGISTRY_DOCKER_CONFIG_JSON"); k != nil && out.file == k.ships {
		out.file = ""
	}
	return out, nil
}

// registryAt is the file that hook.env names, where there is one, else where
// carrick puts it.
func registryAt(ctx context.Context, e steps.Env) string {
	in, err := registryInHookEnv(ctx, e)
	if err != nil || !path.IsAbs(in.file) {
		return registryFile
	}
	if there, err := fileExists(ctx, e, in.file); err == nil && !there {
		return registryFile
	}
	return in.file
}

func adoptRegistryUse(ctx context.Context, e steps.Env) (any, string, error) {
	in, err := registryInHookEnv(ctx, e)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", steps.Absent("there is no %s", hookEnv)
	}
	if err != nil || in.secret == "" {
		return nil, "", err
	}
	return true, "IMAGE_PULL_SECRET in " + hookEnv, nil
}

func adoptRegistrySecret(ctx context.Context, e steps.Env) (any, string, error) {
	in, err := registryInHookEnv(ctx, e)
	if err != nil || in.secret == "" {
		return nil, "", err
	}
	return in.secret, "IMAGE_PULL_SECRET in " + hookEnv, nil
}

// standingLogin is the one login in the file that hook.env names.
func standingLogin(ctx context.Context, e steps.Env) (registryLogin, string, error) {
	at := registryAt(ctx, e)
	data, err := e.Host.Read(ctx, at)
	if errors.Is(err, fs.ErrNotExist) {
		return registryLogin{}, at, steps.Absent("there is no %s", at)
	}
	if err != nil {
		return registryLogin{}, at, err
	}
	logins, err := decodeRegistry(data)
	if err != nil {
		return registryLogin{}, at, fmt.Errorf("%s: %w", at, err)
	}
	if len(logins) > 1 {
		return registryLogin{}, at, fmt.Errorf(
			"%s holds logins of %d registries: carrick makes one; answer which", at, len(logins),
		)
	}
	if logins[0].Host == dockerHubKey {
		logins[0].Host = "docker.io"
	}
	return logins[0], at, nil
}

func adoptRegistryHost(ctx context.Context, e steps.Env) (any, string, error) {
	l, at, err := standingLogin(ctx, e)
	if err != nil {
		return nil, "", err
	}
	return l.Host, at, nil
}

func adoptRegistryUser(ctx context.Context, e steps.Env) (any, string, error) {
	l, at, err := standingLogin(ctx, e)
	if err != nil {
		return nil, "", err
	}
	return l.User, at, nil
}
