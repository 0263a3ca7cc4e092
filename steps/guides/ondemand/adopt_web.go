package ondemand

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"carrick/steps"
)

// adoptClusterID is the only cluster file that is of Kubernetes.
func adoptClusterID(ctx context.Context, e steps.Env) (any, string, error) {
	names, err := e.Host.List(ctx, clustersFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", steps.Absent("%s does not exist", clustersFolder)
	}
	if err != nil {
		return nil, "", err
	}
	var ids []string
	for _, name := range names {
		if ext := path.Ext(name); ext != ".yml" && ext != ".yaml" {
			continue
		}
		at := clustersFolder + "/" + name
		text, err := e.Host.Read(ctx, at)
		if err != nil {
			return nil, "", err
		}
		if d := parseClusterFile(at, text); strings.EqualFold(d.text("job.adapter"), "kubernetes") {
			ids = append(ids, d.id())
		}
	}
	switch len(ids) {
	case 0:
		return nil, "", steps.Absent("no file in %s has the adapter kubernetes", clustersFolder)
	case 1:
		return ids[0], "the file in " + clustersFolder + " with the adapter kubernetes", nil
	}
	return nil, "", fmt.Errorf(
		"%s have the adapter kubernetes: answer cluster.id with the one to use", strings.Join(ids, " and "),
	)
}

// adoptClusterKey is what the cluster file has at a path.
func adoptClusterKey(p string) steps.Adopter {
	return func(ctx context.Context, e steps.Env) (any, string, error) {
		d, err := openClusterFile(ctx, e)
		if err != nil {
			return nil, "", err
		}
		if v := d.text(p); v != "" {
			return v, p + " in " + d.path, nil
		}
		return nil, "", nil
	}
}

// adoptAuth is the type in the cluster file; one that upstream does not know is
// no answer.
func adoptAuth(ctx context.Context, e steps.Env) (any, string, error) {
	d, err := openClusterFile(ctx, e)
	if err != nil {
		return nil, "", err
	}
	switch v := d.text("job.auth.type"); v {
	case "oidc", "managed", "gke":
		return v, "job.auth.type in " + d.path, nil
	case "":
		return "managed", d.path + " has none, which upstream treats as managed", nil
	case "odic":
		return "oidc", d.path + " has the typo odic from the published page", nil
	default:
		return nil, "", fmt.Errorf("%s has auth.type %s, which upstream does not support", d.path, shownWord(v))
	}
}

// adoptPrefix is what hook.env and the cluster file have for a prefix, or the one of them that exists. Where they
// differ, neither is adopted: an admin has to say which is right.
func adoptPrefix(key, p string) steps.Adopter {
	return func(ctx context.Context, e steps.Env) (any, string, error) {
		env, from, err := meantHookEnv(ctx, e)
		noEnv := steps.IsAbsent(err)
		if err != nil && !noEnv {
			return nil, "", err
		}
		d, err := openClusterFile(ctx, e)
		noFile := steps.IsAbsent(err) || err == nil && d.v2 == nil
		if err != nil && (noEnv || !noFile) {
			return nil, "", err
		}
		if noEnv {
			return d.text(p), p + " in " + d.path, nil
		}
		v, err := env.get(key)
		if err != nil {
			return nil, "", err
		}
		if other := d.text(p); !noFile && !env.unedited() && other != v && other != "" {
			if v == "" {
				return other, p + " in " + d.path, nil
			}
			return nil, "", fmt.Errorf("%s in %s is %q, but %s in %s is %q: which is correct?", key, from, v, p, d.path, other)
		}
		return v, key + " in " + from, nil
	}
}

// meantHookEnv is hook.env, or the file that the published page calls it, where
// that alone was edited.
func meantHookEnv(ctx context.Context, e steps.Env) (f envFile, from string, err error) {
	f, err = openHookEnv(ctx, e)
	if err != nil && !steps.IsAbsent(err) || err == nil && !f.unedited() {
		return f, hookEnv, err
	}
	text, wrong := e.Host.Read(ctx, wrongHookEnv)
	switch {
	case errors.Is(wrong, fs.ErrNotExist):
		return f, hookEnv, err
	case wrong != nil:
		return f, hookEnv, wrong
	}
	return parseEnv(string(text)), wrongHookEnv, nil
}

// adoptEnv is what hook.env has for a key, where that is not what the package
// ships.
func adoptEnv(key string) steps.Adopter {
	return func(ctx context.Context, e steps.Env) (any, string, error) {
		env, from, err := meantHookEnv(ctx, e)
		if err != nil {
			return nil, "", err
		}
		v, err := env.get(key)
		if err != nil || v == "" || v == envKeyOf(key).ships {
			return nil, "", err
		}
		return v, key + " in " + from, nil
	}
}

// adoptFlag is a key of the cluster file that is true or false.
func adoptFlag(p string) steps.Adopter {
	return func(ctx context.Context, e steps.Env) (any, string, error) {
		d, err := openClusterFile(ctx, e)
		if err != nil {
			return nil, "", err
		}
		n := d.at(p)
		if n == nil || flag.misfit(n) != "" {
			return nil, "", nil
		}
		return switchedOn(n.Value), p + " in " + d.path, nil
	}
}
