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

// adoptClusterID returns the ID of the only cluster file with the Kubernetes adapter.
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
		"clusters %s have the adapter kubernetes: set cluster.id to one of them", strings.Join(ids, " and "),
	)
}

// adoptClusterKey returns an Adopter for the value at path p of the cluster file.
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

// adoptAuth proposes job.auth.type from the cluster file. It returns an error for a type that upstream does not
// support.
func adoptAuth(ctx context.Context, e steps.Env) (any, string, error) {
	d, err := openClusterFile(ctx, e)
	if err != nil {
		return nil, "", err
	}
	switch v := d.text("job.auth.type"); v {
	case "oidc", "managed", "gke":
		return v, "job.auth.type in " + d.path, nil
	case "":
		return "managed", d.path + " has no job.auth.type, which upstream treats as managed", nil
	case "odic":
		return "oidc", d.path + " has job.auth.type odic, a typo from the published guide", nil
	default:
		return nil, "", fmt.Errorf("%s has auth.type %s, which upstream does not support", d.path, shownWord(v))
	}
}

// adoptPrefix returns an Adopter for a prefix that both hook.env and the cluster file can set. If only one file sets
// the prefix, the Adopter returns that value. If the values differ, it returns neither, because only an admin knows the
// correct value.
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

// meantHookEnv reads hook.env. If hook.env is missing or unedited, it reads hooks.env, the wrong name that the
// published guide uses, if that file exists.
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

// adoptEnv returns an Adopter for key in hook.env. The Adopter ignores the example value from upstream's package.
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

// adoptFlag is like adoptClusterKey, but for booleans.
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
