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
		Map: steps.MapRow{Local: "registry login"},
		Why: "The hook copies a registry login into each user's namespace as an image pull Secret. Every user can read it, " +
			"so use a robot account that can pull only what the apps need.",
		Ask: registryQuestions(),
		Actions: []steps.Action{{
			Name: "registry-file", Title: "Write the registry login", On: steps.Local, When: usesRegistry,
			Doer: action.File{Path: registryFile, Mode: 0o600, Secret: true, Content: registryContent},
		}},
		Checks: registryChecks(),
	}
}

func registryQuestions() []steps.Question {
	return []steps.Question{
		{
			Key: "registry.enabled", Title: "Private registry for app images", Kind: steps.YesNo,
			Adopt:   adoptRegistryUse,
			Help:    "Answer yes if the registry requires a login for the images of the apps.",
			Default: steps.Fixed(false, "default; public images need no login"),
		},
		{
			Key: "registry.host", Title: "Registry address", Kind: steps.Text, NotFromPeer: true, When: usesRegistry,
			Check: probe.ValidRegistry,
			Adopt: adoptRegistryHost,
			Help:  "The host or host:port at the start of the image names, such as registry.example.org:5000.",
		},
		{
			Key: "registry.user", Title: "Registry user", Kind: steps.Text, When: usesRegistry, Check: validUser,
			Adopt: adoptRegistryUser,
			Help:  "A robot account that can only pull. Every user of the portal can read its password.",
		},
		{
			Key: "registry.password", Title: "Registry password", Kind: steps.Text, Secret: true, Opt: true,
			When: usesRegistry,
			Help: "Required once. If the file already contains that user's login, carrick keeps the password.",
		},
		{
			Key: "registry.secret", Title: "Name of the pull Secret in users' namespaces", Kind: steps.Name, When: usesRegistry,
			Adopt:   adoptRegistrySecret,
			Help:    "IMAGE_PULL_SECRET in hook.env.",
			Default: steps.Fixed("private-docker-registry", "the published guide"),
		},
		{
			Key: "registry.ca", Title: "Registry CA file on the web node", Kind: steps.Path, NotFromPeer: true, Opt: true,
			When: usesRegistry,
			Help: "A PEM file, required if the system does not trust the registry's certificate. The cluster's nodes must " +
				"trust this CA as well. Leave it empty to use the system's CAs.",
			Adopt: func(ctx context.Context, e steps.Env) (any, string, error) {
				for _, folder := range []string{"/etc/containers/certs.d", "/etc/docker/certs.d"} {
					at := path.Join(folder, e.Answers.Text("registry.host"), "ca.crt")
					if there, err := fileExists(ctx, e, at); err != nil || there {
						return at, "an existing file", err
					}
				}
				return nil, "", nil
			},
		},
	}
}

func usesRegistry(e steps.Env) bool { return e.Answers.Bool("registry.enabled") }

// registryContent returns the content of image-registry.json. It returns the existing content if that contains the
// login from the answers. If registry.password is not set, any password matches.
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
				return masked.New(string(have)), nil // keeps the file's other logins
			}
		}
	}
	if want.Password.IsZero() {
		return masked.Value{}, steps.Absent("no registry password was given: --secret registry.password=@FILE")
	}
	return encodeRegistry(want)
}

// registryEnv contains the registry settings of hook.env. A field is "" if its setting is not set.
type registryEnv struct{ secret, file string }

// registryInHookEnv returns the registry settings of hook.env. It ignores the example value of
// REGISTRY_DOCKER_CONFIG_JSON that upstream's package ships.
func registryInHookEnv(ctx context.Context, e steps.Env) (registryEnv, error) {
	data, err := e.Host.Read(ctx, hookEnv)
	if err != nil {
		return registryEnv{}, err
	}
	f := parseEnv(string(data))
	var out registryEnv
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

// registryAt returns the path in REGISTRY_DOCKER_CONFIG_JSON if that file exists, or else the path that carrick writes.
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
		return nil, "", steps.Absent("%s does not exist", hookEnv)
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

// existingLogin returns the login in the existing registry file and the path of the file. It returns an error if the
// file contains several logins.
func existingLogin(ctx context.Context, e steps.Env) (registryLogin, string, error) {
	at := registryAt(ctx, e)
	data, err := e.Host.Read(ctx, at)
	if errors.Is(err, fs.ErrNotExist) {
		return registryLogin{}, at, steps.Absent("%s does not exist", at)
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
			"%s contains logins for %d registries, but carrick writes only one login: set registry.host and registry.user", at,
			len(logins),
		)
	}
	if logins[0].Host == dockerHubKey {
		logins[0].Host = "docker.io"
	}
	return logins[0], at, nil
}

func adoptRegistryHost(ctx context.Context, e steps.Env) (any, string, error) {
	l, at, err := existingLogin(ctx, e)
	if err != nil {
		return nil, "", err
	}
	return l.Host, at, nil
}

func adoptRegistryUser(ctx context.Context, e steps.Env) (any, string, error) {
	l, at, err := existingLogin(ctx, e)
	if err != nil {
		return nil, "", err
	}
	return l.User, at, nil
}
