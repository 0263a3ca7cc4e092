package ondemand

import (
	"context"
	"fmt"
	"strings"

	"carrick/steps"
)

// prefix is a setting of both hook.env and the cluster file. They must agree, because the dashboard uses the objects
// that the hook creates.
type prefix struct{ question, env, key string }

var prefixes = []prefix{
	{"users.namespace-prefix", "NAMESPACE_PREFIX", "namespace_prefix"},
	{"users.username-prefix", "K8S_USERNAME_PREFIX", "username_prefix"},
}

// both returns the values in the two files. ok reports whether they are equal.
func (p prefix) both(f envFile, d clusterDoc) (inEnv, inFile string, ok bool, err error) {
	inEnv, err = f.get(p.env)
	inFile = d.text("job." + p.key)
	return inEnv, inFile, inEnv == inFile, err
}

// disputed reports whether the two files have different prefixes and no answer determines the correct one.
func (p prefix) disputed(e steps.Env, f envFile, d clusterDoc) bool {
	inEnv, inFile, same, err := p.both(f, d)
	return err == nil && !same && inEnv != "" && inFile != "" && !e.Answered(p.question) && !e.LeftEmpty(p.question)
}

// ask returns the fix that answers which of the two values is correct.
func (p prefix) ask(e steps.Env, inEnv, inFile string) string {
	return fmt.Sprintf("answer %s with %q, as hook.env has it, or with %q, as the cluster file has it: carrick %s",
		p.question, inEnv, inFile, e.LinkFile())
}

// undisputed returns an AbsentError if a prefix differs between the two files and is not answered. If carrick overwrote
// the wrong value, users could lose access to their existing namespaces.
func undisputed(ctx context.Context, e steps.Env) error {
	f, err := openHookEnv(ctx, e)
	if err == nil && f.unedited() {
		return nil
	}
	var d clusterDoc
	if err == nil {
		d, err = openClusterFile(ctx, e)
	}
	if steps.IsAbsent(err) || err == nil && d.v2 == nil {
		return nil
	}
	if err != nil {
		return err
	}
	for _, p := range prefixes {
		if p.disputed(e, f, d) {
			inEnv, inFile, _, _ := p.both(f, d)
			return steps.Absent("%s is %q in hook.env, but %s is %q in the cluster file; %s",
				p.env, inEnv, p.key, inFile, p.ask(e, inEnv, inFile))
		}
	}
	return nil
}

func prefixesAgree(ctx context.Context, e steps.Env, d clusterDoc) steps.Result {
	f, err := openHookEnv(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	var off, fixes []string
	for _, p := range prefixes {
		inEnv, inFile, same, err := p.both(f, d)
		switch {
		case err != nil:
			return steps.Errored(err)
		case same:
			continue
		case p.disputed(e, f, d):
			fixes = append(fixes, p.ask(e, inEnv, inFile))
		}
		off = append(
			off, fmt.Sprintf("%s is %s, but %s in hook.env is %s", p.key, shownWord(inFile), p.env, shownWord(inEnv)),
		)
	}
	apply := e.ApplyStep("hooks", "clusterfile")
	switch {
	case len(off) == 0:
		return steps.Passed("namespaces %sNAME, users %sNAME", d.text("job.namespace_prefix"), d.text("job.username_prefix"))
	case len(fixes) > 0:
		apply = strings.Join(fixes, "\n") + "\n# existing namespaces of users show the prefix: " + userNamespacesThere(e) +
			"\n# then " + apply
	}
	return steps.Failed(strings.Join(off, "; "), apply)
}

// userNamespacesThere returns the command that lists users' namespaces.
func userNamespacesThere(e steps.Env) string {
	return e.PeerKubectl() + " get namespaces -l " + userLabel + "=" + userValue
}
