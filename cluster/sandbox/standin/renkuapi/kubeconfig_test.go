package renkuapi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKubeconfigs(t *testing.T) {
	s := newSite(t)
	made := filepath.Join(t.TempDir(), "made")
	good := kubeconfigOf(s.remote)
	user := func(keys object) object {
		return with(good, object{"users": []any{object{"name": "u", "user": keys}}})
	}
	cluster := func(keys object) object {
		return with(good, object{"clusters": []any{object{"name": "c", "cluster": keys}}})
	}
	context := func(keys object) object {
		return with(good, object{"contexts": []any{object{"name": "remote", "context": keys}}})
	}
	for name, row := range map[string]struct {
		config any
		err    string // "": loaded
	}{
		"good": {good, ""},
		"YAML": {
			"current-context: x\ncontexts:\n- name: x\n  context: {cluster: c, user: u}\nclusters:\n- name: c\n  cluster: " +
				"{server: 'https://x'}\nusers:\n- name: u\n  user: {token: t}\n",
			"",
		},
		"a tokenFile alone":         {user(object{"tokenFile": made}), ""},
		"no namespace":              {context(object{"cluster": "c", "user": "u"}), ""},
		"a CA that is no PEM":       {cluster(object{"server": "https://x", "certificate-authority-data": "eA=="}), ""},
		"no YAML":                   {"a: [", "the file is not YAML"},
		"a list":                    {"[]", "not a mapping"},
		"empty":                     {"", "not a mapping"},
		"a key of the wrong type":   {with(good, object{"contexts": "x"}), "contexts"},
		"no current-context":        {with(good, object{"current-context": nil}), "'current-context'"},
		"an empty current-context":  {with(good, object{"current-context": ""}), "Context  not found"},
		"another current-context":   {with(good, object{"current-context": "x"}), "No such context x"},
		"no cluster in the context": {context(object{"user": "u"}), "'cluster'"},
		"no user in the context":    {context(object{"cluster": "c"}), "'user'"},
		"another cluster":           {context(object{"cluster": "x", "user": "u"}), "Cluster x not found"},
		"another user":              {context(object{"cluster": "c", "user": "x"}), "User x not found"},
		"no server":                 {cluster(object{}), "'server'"},
		"a CA file":                 {cluster(object{"server": "https://x", "certificate-authority": "/etc/hosts"}), ""},
		"a CA that is no base64":    {cluster(object{"server": "https://x", "certificate-authority-data": "%"}), ""},
		"a CA that is cut off": {
			cluster(object{"server": "https://x", "certificate-authority-data": "eA="}), "Incorrect padding",
		},
		"a certificate file": {user(object{"client-certificate": "/etc/hosts"}), ""},
		"a key file":         {user(object{"client-key": "/etc/hosts"}), ""},
		"a password": {
			user(object{"username": "a", "password": "b"}), "username and password are not supported",
		},
		"an auth-provider": {user(object{"auth-provider": object{"name": "oidc"}}), "auth-provider"},
		"a program": {
			user(
				object{"exec": object{"apiVersion": "client.authentication.k8s.io/v1", "command": "touch", "args": []any{made}}},
			),
			"No such file or directory: 'touch'",
		},
		"a program, in the old form": {
			user(object{
				"exec": object{"apiVersion": "client.authentication.k8s.io/v1alpha1", "command": "touch", "args": []any{made}},
			}),
			"v1alpha1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			data, isText := row.config.(string)
			if !isText {
				data = text(row.config)
			}
			log := newJournal("test", s.clock.now)
			c := load(log, dataService, map[string][]byte{"x.yaml": []byte(data)}, "x.yaml")
			lines := messages(log.String())
			last := lines[len(lines)-1]
			switch {
			case row.err == "" && (c == nil ||
				last != "INFO Successfully loaded Kubernetes config: '/secrets/kube_configs/x.yaml'"):
				t.Errorf("not loaded: %s", last)
			case row.err != "" && (c != nil ||
				!strings.HasPrefix(
					last, "WARNING Failed while loading '/secrets/kube_configs/x.yaml', ignoring kube config. Error: ",
				) ||
				!strings.Contains(last, row.err)):
				t.Errorf("want %q: %s", row.err, last)
			}
			if c != nil && name == "no namespace" && c.namespace != "default" {
				t.Errorf("namespace %q", c.namespace)
			}
		})
	}
	if _, err := os.Stat(made); !os.IsNotExist(err) {
		t.Error("a program of a kubeconfig was run")
	}
}

// Renku ignores insecure-skip-tls-verify unless the kubeconfig also contains a CA or a client certificate.
func TestWhomAKubeconfigTrusts(t *testing.T) {
	s := newSite(t)
	for name, row := range map[string]struct {
		keys     object
		insecure bool
		reached  bool
	}{
		"its CA":              {object{}, false, true},
		"another CA":          {object{"certificate-authority-data": b64(s.CA())}, false, false},
		"its CA, not encoded": {object{"certificate-authority-data": string(s.remote.ca())}, false, true},
		"its CA, in lines":    {object{"certificate-authority-data": " " + b64(s.remote.ca()) + "\n "}, false, true},
		"a CA file": {
			object{"certificate-authority-data": nil, "certificate-authority": "/etc/hosts"}, false, false,
		},
		"a CA that is no base64": {object{"certificate-authority-data": "%"}, false, false},
		"no CA":                  {object{"certificate-authority-data": nil}, false, false},
		"nothing, without a CA": {
			object{"certificate-authority-data": nil, "insecure-skip-tls-verify": true}, false, false,
		},
		"nothing, beside another CA": {
			object{"certificate-authority-data": b64(s.CA()), "insecure-skip-tls-verify": true}, true, true,
		},
		"a CA that no certificate has": {object{"certificate-authority-data": "eA=="}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			config := kubeconfigOf(s.remote)
			entry := config["clusters"].([]any)[0].(object)
			entry["cluster"] = with(entry["cluster"].(object), row.keys)
			read, err := readKubeconfig([]byte(text(config)))
			if err != nil {
				t.Fatal(err)
			}
			c, err := read.connect()
			if err != nil {
				t.Fatal(err)
			}
			if c.config.Insecure != row.insecure {
				t.Errorf("insecure: %v", c.config.Insecure)
			}
			_, err = c.readQuota(t.Context(), "x")
			if (err == nil) != row.reached {
				t.Errorf("%v", err)
			}
		})
	}
	if !s.remote.tokens["token-of-the-service-account"] {
		t.Error("the token was never shown")
	}
}
