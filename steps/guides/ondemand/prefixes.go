package ondemand

import (
	"context"
	"fmt"
	"strings"

	"carrick/steps"
)

// prefix is a setting in both hook.env and the cluster file. The values must be equal, because the dashboard uses the
// objects that the hook creates.
type prefix struct{ question, env, key string } // the question's key, the key in hook.env, the key under job

var prefixes = []prefix{
	{"users.namespace-prefix", "NAMESPACE_PREFIX", "namespace_prefix"},
	{"users.username-prefix", "K8S_USERNAME_PREFIX", "username_prefix"},
}

// both returns the values in hook.env and in the cluster file. ok reports whether they are equal.
func (p prefix) both(f envFile, d clusterDoc) (inEnv, inFile string, ok bool, err error) {
	inEnv, err = f.get(p.env)
	inFile = d.text("job." + p.key)
	return inEnv, inFile, inEnv == inFile, err
}

// disputed reports whether the files contain different, non-empty prefixes and the user has not answered the question.
func (p prefix) disputed(e steps.Env, f envFile, d clusterDoc) bool {
	inEnv, inFile, same, err := p.both(f, d)
	return err == nil && !same && inEnv != "" && inFile != "" && !e.Answered(p.question) && !e.LeftEmpty(p.question)
}

// ask returns the fix for a disputed prefix: answer the question with one of the two values.
func (p prefix) ask(e steps.Env, inEnv, inFile string) string {
	return fmt.Sprintf("set %s to %q, the value in hook.env, or to %q, the value in the cluster file: carrick %s",
		p.question, inEnv, inFile, e.LinkFile())
}

// undisputed returns an AbsentError if a prefix is disputed. If carrick overwrote the correct value, users could lose
// access to their namespaces.
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
		apply = strings.Join(fixes, "\n") + "\n# existing namespaces of users show the prefix: " + peerUserNamespaces(e) +
			"\n# then " + apply
	}
	return steps.Failed(strings.Join(off, "; "), apply)
}

// peerUserNamespaces returns the command with which the cluster's admin lists users' namespaces.
func peerUserNamespaces(e steps.Env) string {
	return e.PeerKubectl() + " get namespaces -l " + userLabel + "=" + userValue
}
