package ondemand_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	all "carrick/assets"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/ondemand"
)

func TestGuideIsValid(t *testing.T) {
	for i := range ondemand.Guide().Steps {
		if ondemand.Guide().Steps[i].Why == "" {
			t.Errorf("step %s has no why", ondemand.Guide().Steps[i].Name)
		}
	}
	if err := engine.Validate([]*steps.Guide{ondemand.Guide()}, all.FS); err != nil {
		for _, line := range strings.Split(err.Error(), "\n") {
			if !strings.Contains(line, "guide renku") && !strings.Contains(line, "guide liqo") {
				t.Error(line)
			}
		}
	}
}

// TestTheWebNodeAnswers verifies that carrick adopts the answers from a configured web node.
func TestTheWebNodeAnswers(t *testing.T) {
	s, root := stood(t, "published-web-node")
	for _, key := range []string{
		"cluster.id", "cluster.server", "oidc.issuer", "oidc.client-id", "hooks.allow-cidr", "oidc.audience",
	} {
		if err := s.Answer(key, nil); err != nil {
			t.Fatal(err)
		}
	}
	found, err := s.Adopt(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, a := range found {
		if v, ok := a.Value.(string); ok {
			got[a.Question.Key] = v
		}
		if a.Why != "" {
			got[a.Question.Key] = "why: " + a.Why
		}
	}
	for key, want := range map[string]string{
		"cluster.id": "my_k8s_cluster", "cluster.title": "My K8s Cluster", "cluster.server": "https://my-k8s.my-center.edu",
		"users.namespace-prefix": "user-", "users.username-prefix": "prod-", "clusterfile.cluster": "ood-prod",
		"clusterfile.context": "ood-prod",
		"oidc.issuer":         "https://idp.my-center.edu/auth/realms/main", "oidc.client-id": "ood",
		"hooks.allow-cidr": "10.0.0.0/16", "cluster.auth": "oidc",
	} {
		if got[key] != want {
			t.Errorf("%s is found to be %q, want %q", key, got[key], want)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "etc/ood/config/hook.env")); err != nil {
		t.Error(err)
	}
}

// TestUndoPutsTheSitesFilesBack verifies that undo removes carrick's settings from the site's files and leaves these
// files as they were before.
func TestUndoPutsTheSitesFilesBack(t *testing.T) {
	s, root := stood(t, "published-web-node")
	files := map[string]string{
		"hook-env": "/etc/ood/config/hook.env", "portal": "/etc/ood/config/ood_portal.yml",
		"pre-hook": "/etc/ood/hooks/k8s-pre-hook.sh",
	}
	for _, action := range []string{"hook-env", "portal"} {
		before := content(t, root, files[action])
		it := do(t, s, action)
		if it.Verb != steps.Update || strings.Contains(it.Diff, "s3cret") || !strings.Contains(it.Diff, "+") {
			t.Errorf("%s: %s\n%s", action, it.Verb, it.Diff)
		}
		after := content(t, root, files[action])
		if after == before || !strings.Contains(after, "# site:") {
			t.Errorf("%s: what stands there is\n%s", action, after)
		}
		if again := do(t, s, action); again.Verb != steps.Leave {
			t.Errorf("%s a second time: %s %s", action, again.Verb, again.Diff)
		}
		p, err := s.PlanUndo(t.Context(), engine.Scope{Actions: []string{action}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Undo(t.Context(), p, nil); err != nil {
			t.Fatal(err)
		}
		if back := content(t, root, files[action]); back != before {
			t.Errorf("%s is not as before:\n%s", action, back)
		}
	}
}

// TestAFolderStandsForTheWebNode verifies that carrick writes all files into a folder that represents the web node, and
// reports the commands that it cannot run there.
func TestAFolderStandsForTheWebNode(t *testing.T) {
	s, root := stood(t, "folder")
	for _, p := range []string{
		"etc/ood/hooks/k8s-pre-hook.sh", "etc/ood/config/clusters.d/test.yml", "etc/httpd/conf.d/ood-portal.conf",
	} {
		if err := os.Remove(filepath.Join(root, p)); err != nil {
			t.Fatal(err)
		}
	}
	for _, action := range []string{"pre-hook", "cluster-file", "portal-update"} {
		do(t, s, action)
	}
	list := content(t, root, "INSTALL")
	for _, want := range []string{
		"/etc/ood/hooks/k8s-pre-hook.sh", "/etc/ood/config/clusters.d/test.yml",
		"/opt/ood/ood-portal-generator/sbin/update_ood_portal",
	} {
		if !strings.Contains(list, want) {
			t.Errorf("INSTALL lacks %s:\n%s", want, list)
		}
	}
}

// TestWhereTheClientsSecretIsFrom verifies the default of the OIDC client secret: the secret in hook.env, or else the
// portal's secret for the same client.
func TestWhereTheClientsSecretIsFrom(t *testing.T) {
	for _, tc := range []struct{ env, portal, want string }{
		{"CLIENT_SECRET='kept'\n", "oidc_client_id: ondemand\noidc_client_secret: portals\n", "kept"},
		{"CLIENT_SECRET=\"changeme\"\n", "oidc_client_id: ondemand\noidc_client_secret: portals\n", "portals"},
		{"", "oidc_client_id: other\noidc_client_secret: portals\n", ""},
		{"", "oidc_client_id: ondemand\noidc_client_secret: /etc/ood/dex/ondemand.secret\n", ""},
	} {
		s, root := stood(t, "healthy-without-client-secret")
		for path, text := range map[string]string{
			"etc/ood/config/hook.env": tc.env, "etc/ood/config/ood_portal.yml": tc.portal,
		} {
			if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p, err := s.Plan(t.Context(), engine.Scope{Side: steps.Local, Actions: []string{"hook-env"}})
		if err != nil {
			t.Fatal(err)
		}
		if pending := p.Actions[0].Pending != ""; pending != (tc.want == "") {
			t.Errorf("%s with %s: the plan is %+v", tc.env, tc.portal, p.Actions[0])
		}
		if tc.want == "" {
			continue
		}
		do(t, s, "hook-env")
		if text := content(t, root, "etc/ood/config/hook.env"); !strings.Contains(text, tc.want) {
			t.Errorf("%s with %s: %s", tc.env, tc.portal, text)
		}
	}
}
