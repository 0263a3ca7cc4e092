package ondemand_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"carrick/cluster/clustertest/upstream"
	"carrick/steps"
	"carrick/steps/guides/ondemand"
	"carrick/steps/stepstest"
)

// gems replaces two Ruby gems that the portal's generator loads. It uses dotenv to read /etc/os-release, and bcrypt to
// hash passwords for Dex, which is not installed here.
var gems = map[string]string{
	"bcrypt.rb": "",
	"dotenv.rb": "module Dotenv\n  def self.parse(path) = File.readlines(path, chomp: true).to_h { |l| l.split('=', " +
		"2) }\nend\n",
}

// TestUpstreamPortal runs upstream's portal generator and hook on the files that carrick writes.
func TestUpstreamPortal(t *testing.T) {
	src := upstream.Find(t, "ondemand")
	ruby, err := exec.LookPath("ruby")
	if err != nil {
		t.Skip("there is no ruby")
	}
	if _, err := exec.LookPath("envsubst"); err != nil {
		t.Skip("there is no envsubst, which upstream's hook runs (package gettext-base)")
	}
	box := seeded(t)
	s := stepstest.Open(
		t, box, ondemand.Guide(), assets, "upstream", stepstest.Given(t, box, ondemand.Guide(), map[string]any{
			"trial.user": "carol", "trial.enabled": false,
		}),
	)
	root := box.Hosts[string(steps.Local)]
	generated := func(t *testing.T) string {
		t.Helper()
		dir := t.TempDir()
		for name, text := range gems {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out := filepath.Join(dir, "ood-portal.conf")
		run := exec.CommandContext(t.Context(), ruby, "-I"+filepath.Join(src.Dir, "ood-portal-generator", "lib"), "-I"+dir,
			"-rood_portal_generator", "-e", "OodPortalGenerator::Application.start('generate')", "--",
			"-c", filepath.Join(root, "etc", "ood", "config", "ood_portal.yml"), "-o", out)
		if said, err := run.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const hook = "/etc/ood/hooks/k8s-pre-hook.sh"
	before := generated(t)
	stepstest.Apply(t, s)
	src.Try(t, "its generator has Apache run the hook of ood_portal.yml", func(t *testing.T) {
		after := generated(t)
		for _, want := range []string{hook, "OIDCPassRefreshToken On"} {
			if strings.Contains(before, want) || !strings.Contains(after, want) {
				t.Errorf("%q: before %v, after %v", want, strings.Contains(before, want), strings.Contains(after, want))
			}
		}
	})
	src.Try(t, "its hook creates a namespace with which the checks agree", func(t *testing.T) {
		config, err := clientcmd.LoadFromFile(filepath.Join(root, "etc", "ood", "hooks", "kubeconfig"))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range config.Clusters {
			c.CertificateAuthority = filepath.Join(root, c.CertificateAuthority)
		}
		for _, u := range config.AuthInfos {
			u.TokenFile = filepath.Join(root, u.TokenFile)
		}
		dir := t.TempDir()
		if err := clientcmd.WriteToFile(*config, filepath.Join(dir, "kubeconfig")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(box.Kubectl, filepath.Join(dir, "kubectl")); err != nil {
			t.Fatal(err)
		}
		env, err := os.ReadFile(filepath.Join(root, "etc", "ood", "config", "hook.env"))
		if err != nil {
			t.Fatal(err)
		}
		hookEnv := filepath.Join(dir, "hook.env")
		if err := os.WriteFile(
			hookEnv, bytes.ReplaceAll(env, []byte("/etc/ood/"), []byte(root+"/etc/ood/")), 0o600,
		); err != nil {
			t.Fatal(err)
		}
		run := exec.CommandContext(
			t.Context(), "bash", filepath.Join(src.Dir, "hooks", "k8s-bootstrap", "k8s-bootstrap-ondemand.sh"),
			"carol", hookEnv,
		)
		run.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "KUBECONFIG="+filepath.Join(dir, "kubeconfig"))
		if said, err := run.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		passes(t, s, "trial", "user-namespace", "user-network-policy", "user-bindings", "user-service-account")
	})
}
