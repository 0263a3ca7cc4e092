package ondemand

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"carrick/steps/check"
)

func TestRootKubeconfigThereAndBack(t *testing.T) {
	data, err := encodeRootKubeconfig("https://[2001:db8::1]:6443/k8s/x")
	if err != nil {
		t.Fatal(err)
	}
	in, err := readWayIn([]byte(data.Reveal()))
	if err != nil || in.Server != "https://[2001:db8::1]:6443/k8s/x" || in.CAFile != clusterCA ||
		in.TokenFile != rootToken || !in.Token.IsZero() || in.Plugin != "" {
		t.Errorf("got %+v, %v", in, err)
	}
	for _, bad := range []string{
		"", "http://a", "https://", "https://u:p@a", "https://a\n", "https://a?x", "https://a#x", "a:6443", "https://a b",
	} {
		if _, err := encodeRootKubeconfig(bad); err == nil || !strings.HasPrefix(err.Error(), "cluster.server: ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	// Characters that are special in YAML or a shell must not change the value.
	hostile := "https://a/:{[&*!|>'\"@`$(x)--"
	if data, err = encodeRootKubeconfig(hostile); err != nil {
		t.Fatal(err)
	}
	var k check.LooseKubeconfig
	if err := yaml.Unmarshal([]byte(data.Reveal()), &k); err != nil || k.Clusters[0].Cluster.Server != hostile {
		t.Errorf("got %+v, %v", k, err)
	}
}

func TestWhatIsNoKubeconfig(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "current-context is not set",
		"hunter2: [":                     "not a kubeconfig",
		"current-context: [hunter2]":     "not a kubeconfig",
		"current-context: \"a\\e[2J\"\n": "that context does not exist",
		"current-context: a\ncontexts: [{name: a, context: {cluster: b, user: c}}]": "has no server",
	} {
		if _, err := readWayIn([]byte(text)); err == nil || !strings.Contains(err.Error(), want) ||
			strings.ContainsAny(err.Error(), "\x1b") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestWhichKubeconfigAScriptExports(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"", ""},
		{"#!/bin/bash\nexport KUBECONFIG=/root/.kube/config\n", "/root/.kube/config"},
		{"  export KUBECONFIG=\"/etc/a b\" # why\n", "/etc/a b"},
		{"KUBECONFIG='/etc/a'; export KUBECONFIG", "/etc/a"},
		{"export KUBECONFIG=$HOME/.kube/config", "/root/.kube/config"},
		{"export KUBECONFIG=\"${HOME}/.kube/config\"\r\n", "/root/.kube/config"},
		{"export KUBECONFIG=~/x\nexport KUBECONFIG=/y", "/y"},
		{"declare -x KUBECONFIG=/y&&true", "/y"},
		{"# export KUBECONFIG=/x\necho KUBECONFIG=/z\nexport KUBECONFIGS=/x", ""},
	} {
		if got, err := exportedKubeconfig(c.script); err != nil || got != c.want {
			t.Errorf("%q: got %q, %v", c.script, got, err)
		}
	}
	for _, script := range []string{
		"export KUBECONFIG=", "export KUBECONFIG=$X/y", "export KUBECONFIG=$(mktemp)", "export KUBECONFIG=`x`",
		"export KUBECONFIG=/a:/b",
		"export KUBECONFIG='$HOME/x'", "export KUBECONFIG=\"/a", "export KUBECONFIG=a/b", "export KUBECONFIG=/a\\ b",
		"export KUBECONFIG=~root/x",
	} {
		if got, err := exportedKubeconfig("\n" + script); err == nil || !strings.HasPrefix(err.Error(), "line 2: ") {
			t.Errorf("%q: got %q, %v", script, got, err)
		}
	}
}

func TestSecurePath(t *testing.T) {
	for _, c := range []struct {
		text, want string
		said       bool
	}{
		{"", "", false},
		{"Defaults    secure_path = /sbin:/bin:/usr/sbin:/usr/bin\n", "/sbin:/bin:/usr/sbin:/usr/bin", true},
		{"Defaults\tenv_reset, secure_path=\"/usr/local/bin:/usr/bin\" # why\n", "/usr/local/bin:/usr/bin", true},
		{"Defaults secure_path=/a, \\\n  env_keep += \"HOME\"\n", "/a", true},
		{
			"Defaults secure_path=/a\nDefaults:root secure_path=/b\nDefaults:apache secure_path=/c\nDefaults>u " +
				"secure_path=/d\nDefaults!/bin/x secure_path=/e\n",
			"/b", true,
		},
		{"Defaults secure_path=/a\nDefaults !secure_path\n", "", true},
		{
			"# Defaults secure_path=/a\nDefaultsX secure_path=/b\nroot ALL=(ALL) ALL\nDefaults env_keep=\"secure_path=/c, x\"",
			"", false,
		},
		{"Defaults secure_path=/a\\,b", "/a,b", true},
		{"Defaults", "", false},
		{"Defaults:root", "", false},
	} {
		if got, said := securePath([]byte(c.text)); got != c.want || said != c.said {
			t.Errorf("%q: got %q, %v", c.text, got, said)
		}
	}
}

// Open OnDemand and the hook run kubectl through a shell, so kubectl's path must not contain characters that are
// special to a shell.
func TestWhichKubectlAShellTakes(t *testing.T) {
	for p, want := range map[string]bool{
		"/usr/local/bin/kubectl": true, "/opt/k8s-1.36/bin/kubectl+x": true,
		"/opt/my tools/kubectl": false, "/opt/a;b": false, "/opt/$x": false, "/opt/'a'": false, "kubectl": false,
		"/opt/../kubectl": false,
	} {
		if err := validKubectl(p); (err == nil) != want {
			t.Errorf("%q: %v", p, err)
		}
	}
}
