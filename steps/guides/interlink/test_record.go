package interlink

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"
)

// recordSubject identifies the endpoint and the account of a record. A record is not valid for another endpoint, CA or
// account.
type recordSubject struct {
	Time     time.Time `json:"time"`
	Endpoint string    `json:"endpoint"`
	CA       string    `json:"ca"`      // fingerprint; "" for the system's CAs
	Account  string    `json:"account"` // user name in the API server
	From     string    `json:"from"`    // the machine that sent the requests
}

// apiReply contains the API server's responses to the jobs' ServiceAccount: through the endpoint (Through) and directly
// (Inside).
type apiReply struct {
	recordSubject
	Through apiAnswer `json:"through"`
	Inside  apiAnswer `json:"inside"`
	// AskedSeconds is the requested lifetime of a token, and GrantedSeconds is the lifetime that the API server
	// granted.
	AskedSeconds   int64 `json:"askedSeconds"`
	GrantedSeconds int64 `json:"grantedSeconds"`
}

// apiAnswer contains the responses over one route to the API: through the endpoint, or directly.
type apiAnswer struct {
	Error   string              `json:"error,omitempty"` // why a request failed
	API     int                 `json:"api"`             // status of GET /api
	Version string              `json:"version,omitempty"`
	WhoAmI  string              `json:"whoami,omitempty"`
	Rules   map[string][]string `json:"rules,omitempty"` // verbs by resource
	Partial bool                `json:"partial,omitempty"`
}

// watched is the outcome of a watch through the endpoint.
type watched struct {
	recordSubject
	Holding bool    `json:"holding,omitempty"` // the watch has started, but its outcome is not recorded yet
	Stopped bool    `json:"stopped,omitempty"` // only if Holding: the user has stopped carrick
	Error   string  `json:"error,omitempty"`
	Status  int     `json:"status"`
	Events  bool    `json:"events"` // events arrived while the watch was open
	Wanted  int     `json:"wantedSeconds"`
	Seconds float64 `json:"heldSeconds"`
	Ended   bool    `json:"ended"` // a proxy or the server closed the watch
	Why     string  `json:"why,omitempty"`
}

// wantedSubject returns the subject that a record must have to be current, and the endpoint's CA in PEM. The CA is nil
// if the endpoint's certificate is from a public CA.
func wantedSubject(e steps.Env) (recordSubject, []byte, error) {
	at, err := e.Own.Text("endpoint")
	if err != nil {
		return recordSubject{}, nil, err
	}
	by, err := e.Own.Text("endpoint-proved-by")
	if err != nil {
		return recordSubject{}, nil, err
	}
	out := recordSubject{Endpoint: at, Account: workloadUser(e), From: "this machine"}
	if by == "public" {
		return out, nil, nil
	}
	ca, err := e.Own.Text("endpoint-ca")
	if err != nil {
		return recordSubject{}, nil, err
	}
	out.CA = fingerprint(ca)
	return out, []byte(ca), nil
}

// of reports whether two subjects have the same endpoint, CA and account.
func (a recordSubject) of(b recordSubject) bool {
	return a.Endpoint == b.Endpoint && a.CA == b.CA && a.Account == b.Account
}

func (a recordSubject) when() string {
	return "from " + a.From + " at " + a.Time.UTC().Format(time.DateTime)
}

func recordName(e steps.Env, what string) string { return "carrick-" + e.Link + "-" + what }

// record decodes a record into the value that into points to. file is asked.yaml or watched.yaml. text is the data of
// the record's ConfigMap. ok is false if the record does not exist or does not parse.
func record(ctx context.Context, e steps.Env, file string, into any) (text map[string]string, ok bool, err error) {
	what, _, _ := strings.Cut(file, ".")
	m, err := check.Get[corev1.ConfigMap](ctx, e.Cluster, check.ConfigMaps, workloadNamespace(e), recordName(e, what))
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if m.Data[file] == "" || yaml.UnmarshalStrict([]byte(m.Data[file]), into) != nil {
		return nil, false, nil
	}
	return m.Data, true, nil
}

// notYet is the placeholder in a plan for a record that does not exist yet.
const notYet = "carrick apply writes the results here\n"

// recorded returns the template values of a record's ConfigMap. They contain the existing record if its subject is
// current. Otherwise they contain notYet.
func recorded(file string, more ...string) action.Values {
	out := action.Values{}
	for _, key := range append(more, file) {
		out[key] = func(ctx context.Context, e steps.Env) (any, error) {
			text, err := completeRecord(ctx, e, file)
			if err == nil && text == nil {
				text, err = begun(ctx, e, file)
			}
			if err != nil {
				return nil, err
			}
			return cmp.Or(text[key], notYet), nil
		}
	}
	return out
}

// validRecord returns the data of a complete record that is still valid, or nil if the requests must be sent again.
func validRecord(ctx context.Context, e steps.Env, file string) (map[string]string, error) {
	text, err := completeRecord(ctx, e, file)
	if err != nil || text == nil {
		return nil, err
	}
	if old, err := outdated(ctx, e, file); err != nil || old {
		return nil, err
	}
	return text, nil
}

// begun returns the data of the record of a watch that is still open or was stopped, or nil if there is none.
func begun(ctx context.Context, e steps.Env, file string) (map[string]string, error) {
	var r watched
	text, ok, err := record(ctx, e, file, &r)
	if err != nil || !ok || !r.Holding {
		return nil, err
	}
	return text, nil
}

// completeRecord returns the data of a complete record with the current subject, or nil if there is none.
func completeRecord(ctx context.Context, e steps.Env, file string) (map[string]string, error) {
	want, _, err := wantedSubject(e)
	if err != nil {
		return nil, err
	}
	var text map[string]string
	complete := false
	if file == "asked.yaml" {
		var r apiReply
		text, complete, err = record(ctx, e, file, &r)
		complete = complete && r.of(want) && r.Through.Error == "" && r.Inside.Error == "" &&
			r.AskedSeconds >= int64(jobHours(e).Seconds())
	} else {
		var r watched
		want.Account = watchUser(e)
		text, complete, err = record(ctx, e, file, &r)
		complete = complete && r.of(want) && !r.Holding && r.Error == "" && !r.Ended &&
			r.Wanted >= e.Answers.Int("test.watch")
	}
	if err != nil || !complete {
		return nil, err
	}
	return text, nil
}

// rulesOf maps each resource or path to its verbs. Keys look like "pods", "deployments.apps", "secrets/NAME" or
// "/api/*".
func rulesOf(rules, paths []rbacv1.PolicyRule) map[string][]string {
	out := map[string][]string{}
	add := func(what string, verbs []string) {
		all := append(slices.Clone(out[what]), verbs...)
		slices.Sort(all)
		out[what] = slices.Compact(all)
	}
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				what := resource
				if group != "" {
					what += "." + group
				}
				names := r.ResourceNames
				if len(names) == 0 {
					names = []string{""}
				}
				for _, name := range names {
					if name != "" {
						name = " " + name
					}
					add(what+name, r.Verbs)
				}
			}
		}
	}
	for _, r := range paths {
		for _, path := range r.NonResourceURLs {
			add(path, r.Verbs)
		}
	}
	return out
}

// table formats the rules of both routes side by side, one line per resource. Resources come first, then non-resource
// paths. The resource is the last column, because it can be long and wrap.
func table(through, inside map[string][]string) []string {
	all := map[string]bool{}
	for _, m := range []map[string][]string{through, inside} {
		for what := range m {
			all[what] = true
		}
	}
	on := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		if pathA, pathB := strings.HasPrefix(a, "/"), strings.HasPrefix(b, "/"); pathA != pathB {
			if pathB {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	rows := [][3]string{{"ENDPOINT", "INSIDE", "ON"}}
	for _, what := range on {
		rows = append(
			rows, [3]string{cmp.Or(strings.Join(through[what], ","), "-"), cmp.Or(strings.Join(inside[what], ","), "-"), what},
		)
	}
	var wide [2]int
	for _, r := range rows {
		wide[0], wide[1] = max(wide[0], len(r[0])), max(wide[1], len(r[1]))
	}
	var out []string
	for _, r := range rows {
		out = append(out, fmt.Sprintf("%-*s  %-*s  %s", wide[0], r[0], wide[1], r[1], r[2]))
	}
	return out
}

// differingRules returns the resources and paths for which the verbs in a and b differ.
func differingRules(a, b map[string][]string) []string {
	var out []string
	for what := range a {
		if !slices.Equal(a[what], b[what]) {
			out = append(out, what)
		}
	}
	for what := range b {
		if _, both := a[what]; !both {
			out = append(out, what)
		}
	}
	slices.Sort(out)
	return out
}

// grants reports whether rules allow verb on the given resource.
func grants(rules map[string][]string, verb, group, resource string) bool {
	for _, what := range []string{resource + "." + group, "*." + group, resource + ".*", "*.*"} {
		if slices.Contains(rules[what], verb) || slices.Contains(rules[what], "*") {
			return true
		}
	}
	return false
}

// missingForArgo returns the verbs that Argo's executor requires on workflowtaskresults but that rules do not grant.
// lines is a table of the required verbs.
func missingForArgo(rules map[string][]string) (lacks, lines []string) {
	for _, r := range argoPermissions("") {
		has := "allowed"
		if !grants(rules, r.Verb, r.Group, r.Resource) {
			has = "not allowed"
			lacks = append(lacks, r.Verb)
		}
		lines = append(lines, fmt.Sprintf("Argo's executor needs %-6s %s.%s: %s", r.Verb, r.Resource, r.Group, has))
	}
	return lacks, lines
}
