package renku_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/renku"
	"carrick/steps/stepstest"
)

// fault is what a check has to say of something that is wrong.
type fault struct {
	check string
	side  steps.Side
	found string // words of it
	fix   string // words of it
}

// pageFaults are the faults of what the published guide leaves behind, and how
// each is mended. The order is the guide's.
var pageFaults = []fault{
	{
		"metadata-blocked", steps.Remote,
		"egress-from-renku-v2-sessions allows sessions to reach cloud metadata services: 169.254.169.254",
		"--step prerequisites --take-over",
	},
	{
		"pod-security", steps.Remote, "renku-user-sessions sets no Pod Security level",
		"pod-security.kubernetes.io/enforce=baseline",
	},
	{"ingress-policy", steps.Remote, "no ingress policy selects session pods", "--step prerequisites --take-over"},
	{"session-crd-equal", steps.Remote, "amaltheasessions.amalthea.dev differs", "--step operator --take-over"},
	{"operator-version", steps.Remote, "remote: 0.31.0 (label", "--step operator --take-over"},
	{
		"custom-cas-exist", steps.Remote, "Secret renku-user-sessions/renku-ca does not exist", "--step operator --take-over",
	},
	{"role-rules", steps.Remote, "Role cross-cluster-role does not grant: get persistentvolumeclaims", "--step identity"},
	{
		"priorityclasses-binding", steps.Remote,
		"no ClusterRoleBinding names ServiceAccount renku-user-sessions/cross-cluster-sa", "--step identity",
	},
	{
		"credential-priorityclasses", steps.Remote, "2 of 2 permissions are missing: list priorityclasses", "--step identity",
	},
	{
		"credential-deletes-classes", steps.Remote, "1 of 1 permissions are missing: delete priorityclasses",
		"--step identity",
	},
	{"token-secrets-denied", steps.Remote, "a token Secret for any ServiceAccount", "--step identity"},
	{"session-account-fixed", steps.Remote, "sessions that run as any ServiceAccount", "--step identity"},
	{
		"accounts-least-privilege", steps.Remote, "Role/amalthea-sessions-1763000000-manager-role in renku-user-sessions",
		"--step identity",
	},
	{"stored-kubeconfig", steps.Local, "current-context is not set", "--step secret --take-over"},
	{"uploads", steps.Remote, "registered annotations: missing proxy-body-size", "--step register"},
	{"cors-headers", steps.Remote, `"$http_access_control_request_headers" is not a list of names`, "--step register"},
	{"snippets-allowed", steps.Remote, `allow-snippet-annotations "false"`, "--step register"},
	{
		"cluster-as-planned", steps.Local, "session_ingress_use_default_cluster_tls_cert is not set and should be true",
		"--step register",
	},
	{"services-restarted", steps.Local, "data-tasks has been running since", "--step restart"},
	{"pool-exists", steps.Local, `Renku has no pool named "Remote Cluster"`, "--step pool"},
	{
		"redirect-uris", steps.Local, "notebooks.oidc.extraRedirectUris does not contain https://localhost:",
		"helm upgrade renku renku/renku -n renku --kube-context",
	},
	{
		"web-origins", steps.Local, "notebooks.oidc.extraWebOrigins does not contain https://localhost:",
		"-f oidc-values.yaml",
	},
}

// pageRest are the warnings that stay: of the site, or for a person to judge.
var pageRest = []fault{
	{"user-secrets", steps.Local, "sessions with user secrets do not start", "set sessions.user-secrets to no"},
	{"session-port", steps.Remote, "must be in each session's address", "443"}, // the sandbox's own
	{"pool-members", steps.Local, "only admins can use it", "set pool.members"},
}

// onSite gives a site that is seeded the answers that Renku's values tell, so
// that they hold when the values are gone.
func onSite(t *testing.T, box *clustertest.Sandbox, answers map[string]any) map[string]any {
	t.Helper()
	s := stepstest.Open(t, box, renku.Guide(), assets, "onsite", nil)
	defer s.Close()
	out := map[string]any{}
	maps.Copy(out, answers)
	for _, step := range s.Guide().Steps {
		for _, a := range s.Answers(t.Context(), &step) {
			if a.Question.Key == "sessions.host" || a.Question.Key == "sessions.port" {
				out[a.Question.Key] = a.Value
			}
		}
	}
	return out
}

// The acceptance of the guide: what the published page leaves behind is found,
// fault by fault, each is mended by the fix as it is printed, and what carrick
// took over for that stays when it is taken back.
func TestVerifyWhatThePublishedPageLeavesIsMendedByThePrintedFixes(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := seeded(t)
	answers := onSite(t, box, map[string]any{
		"identity.name": "cross-cluster-sa", "identity.token-secret": "cross-cluster-sa-secret",
		"cluster.name": "Remote Cluster", "cluster.config-name": "remote-cluster.yaml",
		"pools.quotas":   []any{"renku-resource-pool-1-priority-class"},
		"renku.tracking": true, // a Renku that does asks for what the page's Role lacks
	})
	box.SeedFault(t, "renku", "page-frames")
	box.SeedFault(t, "renku", "login-by-hand")
	s := stepstest.Open(t, box, renku.Guide(), assets, "paged", site(t, box, answers))
	s.Link().Path = filepath.Join(t.TempDir(), "page.yaml")
	before := stepstest.Snapshot(t, box)

	reports(t, s, pageFaults, pageRest[:2])
	mendAll(t, box, s)
	reports(t, s, nil, pageRest)

	stepstest.Undo(t, s)
	after := stepstest.Snapshot(t, box)
	// Renku deletes it with the pool
	delete(before, "remote priorityclasses.scheduling.k8s.io /renku-resource-pool-1-priority-class")
	// upgraded, which undo says it leaves
	changed := regexp.MustCompile(`sh\.helm\.release\.v1|amalthea-sessions-1763000000|amaltheasessions\.amalthea\.dev`)
	used := regexp.MustCompile(`"labels":\{"kubernetes.io/legacy-token-last-used":"[^"]*"\},`) // the API server's own note
	for k, was := range before {
		if now, is := after[k]; !is || (used.ReplaceAllString(now, "") != was && !changed.MatchString(k)) {
			t.Errorf("%s is not as it was; is it there: %v", k, is) // it may be a Secret: it is not shown
		}
	}
	for k := range after {
		if _, was := before[k]; !was && !changed.MatchString(k) {
			t.Errorf("left behind: %s", k)
		}
	}
	s.Forget()
	if v := passed(t, s, "cluster-registered", steps.Local); v.Status != steps.Pass {
		t.Errorf("the page's cluster is gone: %s", v.Found)
	}
}

// reports fails the test unless exactly these faults are reported, as said.
func reports(t *testing.T, s *engine.Session, lists ...[]fault) {
	t.Helper()
	now := reds(t, s)
	due := map[string]fault{}
	for _, f := range slices.Concat(lists...) {
		due[f.check+"@"+string(f.side)] = f
	}
	for _, c := range s.Guide().Cells() {
		id := c.Check + "@" + string(c.Side)
		v, bad := now[id]
		f, wanted := due[id]
		delete(due, id)
		switch {
		case bad && !wanted:
			t.Errorf("%s: %s: %s\nfix: %s", id, v.Status, v.Found, v.Fix)
		case wanted && !bad:
			t.Errorf("%s is silent", id)
		case wanted && (!strings.Contains(v.Found, f.found) || !strings.Contains(v.Fix, f.fix)):
			t.Errorf("%s says %q, want %q\nfix %q, want %q", id, v.Found, f.found, v.Fix, f.fix)
		}
	}
	for id := range due {
		t.Errorf("there is no check %s", id)
	}
}

// mendAll runs the first fix that can be run, as it is printed, until none is
// left. Each must make its check hold.
func mendAll(t *testing.T, box *clustertest.Sandbox, s *engine.Session) {
	t.Helper()
	for range 2 * len(pageFaults) {
		s.Forget()
		b, _ := s.Look(t.Context(), s.Guide().Cells())
		i := slices.IndexFunc(s.Guide().Cells(), func(c steps.Cell) bool { return runnable(b.Verdict(c)) })
		if i < 0 {
			return
		}
		cell := s.Guide().Cells()[i]
		v := b.Verdict(cell)
		runFix(t, box, s, v.Fix)
		if now := passed(t, s, cell.Check, cell.Side); now.Status != steps.Pass {
			t.Fatalf("%s was %q; after %q it is %s: %q", cell.Check, v.Found, v.Fix, now.Status, now.Found)
		}
	}
	t.Fatal("the fixes come to no end")
}

var (
	applyLine  = regexp.MustCompile(`carrick apply (\S+) --step (\S+)((?: --\S+)*)`)
	backupLine = regexp.MustCompile(`secret\.backup: (\S+)`)
	answerLine = regexp.MustCompile(`(^|[^-])set [a-z]+\.[a-z-]+|answer `)
	setLine    = regexp.MustCompile(`helm upgrade .* --set (\S+)=(\S+)`)
)

func runnable(v steps.Result) bool {
	return !v.Status.Holds() && v.Status != steps.Skip && (applyLine.MatchString(v.Fix) ||
		strings.Contains(v.Fix, "helm upgrade")) ||
		v.Status == steps.Warn && applyLine.MatchString(v.Fix) && !answerLine.MatchString(v.Fix)
}

// runFix does what a fix says: carrick by its engine, and Helm, which is the
// admin of Renku's, by writing the values that are printed into its release.
func runFix(t *testing.T, box *clustertest.Sandbox, s *engine.Session, fix string) {
	t.Helper()
	t.Logf("fix: %s", fix)
	m := applyLine.FindStringSubmatch(fix)
	if m == nil {
		upgrade(t, box, valuesOf(t, fix))
		return
	}
	if m[1] != s.Link().Path {
		t.Fatalf("the fix is for %s, the link is %s", m[1], s.Link().Path)
	}
	if b := backupLine.FindStringSubmatch(fix); b != nil {
		if err := s.Answer("secret.backup", filepath.Join(filepath.Dir(m[1]), b[1])); err != nil {
			t.Fatal(err)
		}
	}
	p, err := s.Plan(t.Context(), engine.Scope{Steps: strings.Split(m[2], ",")})
	if err != nil {
		t.Fatal(err)
	}
	takes, replaces := strings.Contains(m[3], "--take-over"), strings.Contains(m[3], "--replace")
	if err := s.Apply(t.Context(), p, steps.ApplyOptions{TakeOver: takes, Replace: replaces}, nil); err != nil {
		t.Fatalf("%s: %v", fix, err)
	}
}

// valuesOf are the values that a fix for Helm sets.
func valuesOf(t *testing.T, fix string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if m := setLine.FindStringSubmatch(fix); m != nil {
		at := out
		keys := strings.Split(m[1], ".")
		for _, k := range keys[:len(keys)-1] {
			inner := map[string]any{}
			at[k], at = inner, inner
		}
		at[keys[len(keys)-1]] = m[2]
		return out
	}
	text, _, ok := strings.Cut(fix, "helm upgrade")
	if err := yaml.Unmarshal([]byte(text), &out); !ok || err != nil || len(out) == 0 {
		t.Fatalf("the fix can't be followed: %v\n%s", err, fix)
	}
	return out
}

// upgrade puts values over those of Renku's release, as an upgrade notes them.
// Nothing is rolled out.
func upgrade(t *testing.T, box *clustertest.Sandbox, values map[string]any) {
	t.Helper()
	const name = "sh.helm.release.v1.renku.v1"
	encoded := box.Run(
		t, clustertest.Local, "", "-n", "renku", "get", "secret", name, "-o", "go-template={{.data.release | base64decode}}",
	)
	packed, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(zip)
	release := map[string]any{}
	if err != nil || json.Unmarshal(plain, &release) != nil {
		t.Fatalf("the release can't be read: %v", err)
	}
	release["config"] = over(release["config"], values)
	plain, err = json.Marshal(release)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(plain); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	patch := fmt.Sprintf(`{"stringData":{"release":%q}}`, base64.StdEncoding.EncodeToString(out.Bytes()))
	box.Run(t, clustertest.Local, "", "-n", "renku", "patch", "secret", name, "--type=merge", "-p", patch)
}

// over is a tree of values with others put over them.
func over(below any, above map[string]any) map[string]any {
	out, _ := below.(map[string]any)
	if out == nil {
		out = map[string]any{}
	}
	for k, v := range above {
		if inner, ok := v.(map[string]any); ok {
			v = over(out[k], inner)
		}
		out[k] = v
	}
	return out
}
