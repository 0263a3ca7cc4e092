package ondemand

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carrick/steps"
	"carrick/steps/check"
	"k8s.io/apimachinery/pkg/util/validation"
)

// passwdUser is a regular user in the web node's passwd database.
type passwdUser struct{ name, home string }

// firstUser is the lowest UID of regular users (UID_MIN in login.defs) on all systems that Open OnDemand supports.
// overflowUser is the UID of the user nobody.
const (
	firstUser    = 1000
	overflowUser = 65534
)

// passwdUsers returns the regular users in the passwd file who have a login shell. It removes duplicates.
func passwdUsers(text string) []passwdUser {
	var out []passwdUser
	seen := map[string]bool{}
	for _, l := range strings.Split(text, "\n") {
		f := strings.Split(strings.TrimRight(l, "\r"), ":")
		if len(f) != 7 || seen[f[0]] {
			continue
		}
		uid, err := strconv.Atoi(f[2])
		shell := f[6][strings.LastIndex(f[6], "/")+1:]
		if err != nil || uid < firstUser || uid == overflowUser ||
			slices.Contains([]string{"nologin", "false", "sync", "shutdown", "halt"}, shell) {
			continue
		}
		seen[f[0]] = true
		out = append(out, passwdUser{name: f[0], home: f[5]})
	}
	return out
}

// nameFault returns why the hook cannot create a valid namespace for user, or "" if it can.
func nameFault(e steps.Env, user string) string {
	hook, adapter := hookNamespace(e, user), userNamespace(e, user)
	switch {
	case hook != adapter:
		return fmt.Sprintf(
			"%s: the dashboard uses %s, but the hook requests %s, which is not a valid name", shownWord(user), adapter, hook,
		)
	case strings.ToLower(user) != user:
		return fmt.Sprintf("%s: contains upper-case letters", shownWord(user))
	case strings.Contains(user, "_"):
		return fmt.Sprintf("%s: contains an underscore", shownWord(user))
	case len(hook) > validation.DNS1123LabelMaxLength:
		return fmt.Sprintf("%s: %s has %d characters, more than 63", shownWord(user), hook, len(hook))
	}
	if faults := validation.IsDNS1123Label(hook); len(faults) > 0 {
		return fmt.Sprintf("%s: %s is not a valid namespace name", shownWord(user), shownWord(hook))
	}
	return ""
}

// mostNamed is the maximum number of users that a finding names.
const mostNamed = 8

func userNames(_ context.Context, e steps.Env) steps.Result {
	names, err := e.Own.List("login-names")
	if err != nil {
		return steps.Errored(err)
	}
	if len(names) == 0 {
		return steps.Skipped(
			"the web node lists no users: their directory (LDAP) does not list them. Usernames can contain only lower-case "+
				"letters, digits and -, at most %d characters",
			validation.DNS1123LabelMaxLength-len(namespacePrefix(e)),
		)
	}
	var bad, good []string
	for _, n := range names {
		if why := nameFault(e, n); why != "" {
			bad = append(bad, why)
		} else {
			good = append(good, hookNamespace(e, n))
		}
	}
	if len(bad) > 0 {
		found := fmt.Sprintf(
			"%d of the %d users that the web node lists get no namespace: %s", len(bad), len(names), shortList(bad, "; "),
		)
		fix := "rename these users to lower-case letters, digits and -, or exclude them from this cluster: acls in " +
			clusterPath(e) + ". These users can log in to the portal, but their Kubernetes apps fail"
		if len(good) == 0 {
			return steps.Failed(found, fix)
		}
		return steps.Warned(found, fix)
	}
	return steps.Passed(
		"all %d users that the web node lists get a namespace: %s. A directory (LDAP) can contain more users", len(names),
		shortList(good, ", "),
	)
}

// shortList joins the first mostNamed words with the separator by. It appends the number of remaining words.
func shortList(words []string, by string) string { return check.FirstOf(words, mostNamed, by) }
