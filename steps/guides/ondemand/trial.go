package ondemand

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

// Names from upstream's hook: the annotation on a user's namespace, and the NetworkPolicy in it.
const (
	seenNote    = "openondemand.org/last-hook-execution"
	fencePolicy = "deny-from-other-namespaces"
)

const hookSource = "OSC/ondemand: hooks/k8s-bootstrap/yaml"

func trial() steps.Step {
	return steps.Step{
		Name: "trial", Title: "Trial user",
		Map: steps.MapRow{Remote: "trial user"},
		Why: "The hook runs when a user's web server starts and reports failures only in syslog. carrick therefore checks " +
			"one user's namespace. It verifies that the user can run apps there and has no access to another user's namespace.",
		Ask: []steps.Question{
			{
				Key: "trial.user", Title: "Login name of the trial user", Kind: steps.Text, On: steps.Remote, Opt: true,
				Check: checkUser,
				Help: "A user who has logged in to the portal since the hook was installed, or a user whose namespace carrick " +
					"creates (trial.enabled).",
				Default: defaultUser,
			},
			{
				Key: "trial.other", Title: "Login name of another user", Kind: steps.Text, On: steps.Remote, Opt: true,
				Check: checkUser, When: hasTrialUser,
				Help:    "The trial user must not have access to this user's namespace.",
				Default: defaultOther,
			},
			{
				Key: "trial.enabled", Title: "Trial objects created by carrick", Kind: steps.YesNo, On: steps.Remote,
				When: hasTrialUser,
				Help: "Answer yes to create the hook's objects for these users before anyone logs in. This tests the setup of " +
					"the cluster. The hook adopts the objects at the first login, and undo deletes them.",
				Default: steps.Fixed(false, "default; a login to the portal creates them"),
			},
		},
		Facts: []steps.Fact{
			{
				Name: "hooked-users", Title: "the users whose namespace the hook has created", On: steps.Remote, Learn: hookedUsers,
			},
			{Name: "node-addresses", Title: "the addresses of the nodes", On: steps.Remote, Shared: true, Learn: nodeAddresses},
			{Name: "node-names", Title: "the names of the nodes", On: steps.Remote, Shared: true, Learn: nodeNames},
		},
		Actions: []steps.Action{
			trialAction(
				"trial-namespace", "Create the trial users' namespaces", "trial-namespace.yaml", makesTrial, "signed-in",
			),
			trialAction(
				"trial-network-policy", "Restrict ingress to the trial users' pods", "trial-network-policy.yaml", makesTrial,
				"signed-in",
			),
			trialAction(
				"trial-role-bindings", "Bind the trial users to their roles", "trial-role-bindings.yaml", makesTrial,
				"users-role", "initializer-role",
			),
			trialAction(
				"trial-reaper-binding", "Allow job-pod-reaper in the trial namespaces", "trial-reaper-binding.yaml",
				func(e steps.Env) bool { return makesTrial(e) && usesWalltime(e) }, "reaper-installed",
			),
		},
		Checks: slices.Concat(trialChecks(), []steps.Check{reaperBoundCheck()}, isolationChecks()),
	}
}

func trialAction(name, title, file string, when func(steps.Env) bool, needs ...string) steps.Action {
	return steps.Action{
		Name: name, Title: title, On: steps.Remote, When: when, Needs: needs,
		Doer: action.Manifest{File: file, Each: trialUsers},
	}
}

func hasTrialUser(e steps.Env) bool { return e.Answers.Text("trial.user") != "" }
func triedBoth(e steps.Env) bool    { return hasTrialUser(e) && e.Answers.Text("trial.other") != "" }
func makesTrial(e steps.Env) bool   { return hasTrialUser(e) && e.Answers.Bool("trial.enabled") }

// trialUsers returns the users for whom carrick creates namespaces. An existing namespace keeps the time of the hook's
// last run. A new namespace gets the start of the current UTC day, so that plan and apply use the same value.
func trialUsers(ctx context.Context, e steps.Env) ([]any, error) {
	var out []any
	for _, key := range []string{"trial.user", "trial.other"} {
		user := e.Answers.Text(key)
		if user == "" {
			continue
		}
		name := hookNamespace(e, user)
		if bad := validation.IsDNS1123Label(name); len(bad) > 0 {
			return nil, fmt.Errorf("%s is not a valid namespace name: %s", name, strings.Join(bad, "; "))
		}
		seen := strconv.FormatInt(time.Now().UTC().Truncate(24*time.Hour).Unix(), 10)
		ns, err := check.Get[corev1.Namespace](ctx, e.Cluster, check.Namespaces, "", name)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		if err == nil && ns.Annotations[seenNote] != "" {
			seen = ns.Annotations[seenNote]
		}
		out = append(out, map[string]any{"user": user, "namespace": name, "seen": seen})
	}
	return out, nil
}

func checkUser(v string) error {
	if strings.ContainsAny(v, " /:\t") {
		return errors.New("a login name, as the command id prints it")
	}
	return nil
}

// hookedUsers returns the users who have a namespace from the hook, starting with the most recent login.
func hookedUsers(ctx context.Context, e steps.Env) (any, error) {
	all, err := userNamespaces(ctx, e)
	if err != nil {
		return nil, err
	}
	at := func(ns *corev1.Namespace) int64 {
		n, _ := strconv.ParseInt(ns.Annotations[seenNote], 10, 64)
		return n
	}
	slices.SortStableFunc(all, func(a, b *corev1.Namespace) int { return int(at(b) - at(a)) })
	var users []string
	for _, ns := range all {
		if user, ok := strings.CutPrefix(ns.Name, namespacePrefix(e)); ok && user != "" {
			users = append(users, user)
		}
	}
	if len(users) == 0 {
		return nil, steps.Absent(
			"no namespace has the label %s=%s and the prefix %q yet", userLabel, userValue, namespacePrefix(e),
		)
	}
	return users, nil
}

func defaultUser(e steps.Env) (any, string) { return known(e, "") }

func defaultOther(e steps.Env) (any, string) { return known(e, e.Answers.Text("trial.user")) }

// known returns a user other than but. It prefers users who have logged in over other accounts on the web node. It also
// returns the source of the name, which the form shows next to the default.
func known(e steps.Env, but string) (any, string) {
	for _, from := range []struct {
		facts steps.Facts
		name  string
		why   string
	}{
		{e.Own, "hooked-users", "a namespace that the hook created"},
		{e.Peer, "login-names", "an account of the web node"},
	} {
		users, err := from.facts.List(from.name)
		if err != nil {
			continue
		}
		for _, u := range users {
			if u != but && checkUser(u) == nil {
				return u, from.why
			}
		}
	}
	return nil, ""
}

func nodeAddresses(ctx context.Context, e steps.Env) (any, error) {
	return ofNodes(ctx, e, func(n *corev1.Node) []string {
		return slices.DeleteFunc(check.InternalAddresses(n), func(a string) bool {
			_, err := netip.ParseAddr(a)
			return err != nil
		})
	})
}

func nodeNames(ctx context.Context, e steps.Env) (any, error) {
	return ofNodes(ctx, e, func(n *corev1.Node) []string { return []string{n.Name} })
}

func ofNodes(ctx context.Context, e steps.Env, of func(*corev1.Node) []string) (any, error) {
	nodes, err := check.List[corev1.Node](ctx, e.Cluster, check.Nodes, "", cluster.Selector{})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, n := range nodes {
		for _, v := range of(n) {
			if !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	if len(out) == 0 {
		return nil, steps.Absent("the cluster has no nodes, or they have no address")
	}
	return out, nil
}
