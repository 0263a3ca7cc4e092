package renkuapi

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// messages are the lines of a log without what stands before the message.
func messages(log string) []string {
	found := []string{}
	for line := range strings.Lines(log) {
		_, level, _ := strings.Cut(line, " [")
		level, message, _ := strings.Cut(strings.TrimSpace(level), "] ")
		_, message, _ = strings.Cut(message, ": ")
		found = append(found, level+" "+message)
	}
	return found
}

func TestKubeconfigsAreLoadedWhenAPodStarts(t *testing.T) {
	s := newSite(t)
	s.mount(map[string]string{"paris.yaml": text(kubeconfigOf(s.remote))})
	s.must(201, "POST", "/clusters", guideCluster()) // its key is not in the Secret
	for _, app := range []string{"renku-data-service", "renku-k8s-watcher", "renku-data-tasks", "renku-secrets-storage"} {
		s.addPod(app, app+"-x", object{"name": configVolume, "secret": object{"secretName": "renku-remote-clusters"}})
	}
	s.addPod("renku-gateway", "renku-gateway-x", object{"name": configVolume, "secret": object{"secretName": "renku-remote-clusters"}})
	s.look()
	const root = "/secrets/kube_configs/"
	want := []string{
		"INFO Trying to load Kubernetes config: '" + root + "paris.yaml'",
		"INFO Reading: '" + root + "paris.yaml'",
		"INFO Creating API for '" + root + "paris.yaml'",
		"INFO Creating cluster connection for '" + root + "paris.yaml'",
		"INFO Successfully loaded Kubernetes config: '" + root + "paris.yaml'",
		"INFO Trying to load Kubernetes config: '" + root + "bern.yaml'",
		"INFO Reading: '" + root + "bern.yaml'",
		"WARNING Failed while loading '" + root + "bern.yaml', ignoring kube config. " +
			"Error: [Errno 2] No such file or directory: '" + root + "bern.yaml'",
	}
	for _, app := range []string{"renku-data-service", "renku-k8s-watcher", "renku-data-tasks", "renku-secrets-storage"} {
		log, ok := s.Log("renku", app+"-x", "service")
		if got := messages(log); !ok || !slices.Equal(got[1:], want) || !strings.Contains(log, "stand-in") {
			t.Errorf("%s: %v\n%s", app, ok, log)
		}
	}
	for _, no := range [][3]string{
		{"renku", "renku-gateway-x", "service"},
		{"other", "renku-data-service-x", "service"},
		{"renku", "renku-data-service-x", "sidecar"},
		{"renku", "nothing", ""},
	} {
		if log, ok := s.Log(no[0], no[1], no[2]); ok {
			t.Errorf("%v has a log: %s", no, log)
		}
	}
	if slices.Contains(s.remote.asked(), "list resourcequotas") || s.remote.tokens["token-of-the-service-account"] {
		t.Error("loading a kubeconfig asks nothing of its cluster")
	}
}

func TestAPodWithoutTheVolume(t *testing.T) {
	s := newSite(t)
	s.addPod(dataService, "bare")
	s.look()
	log, ok := s.Log("renku", "bare", "")
	if got := messages(log); !ok || len(got) != 2 || got[1] != "WARNING Cannot open directory '/secrets/kube_configs', ignoring kube configs..." {
		t.Errorf("%v\n%s", ok, log)
	}
}

func TestAPodWaitsForItsSecret(t *testing.T) {
	s := newSite(t)
	s.addPod(dataService, "waits", object{"name": configVolume, "secret": object{"secretName": "renku-remote-clusters"}})
	s.addPod(dataService, "does-not", object{"name": configVolume, "secret": object{"secretName": "nothing", "optional": true}})
	s.look()
	if log, ok := s.Log("renku", "waits", ""); ok {
		t.Errorf("it has started: %s", log)
	}
	if log, ok := s.Log("renku", "does-not", ""); !ok || !strings.Contains(log, "No such file") {
		t.Errorf("%v %s", ok, log)
	}
	s.local.deny("get secrets")
	s.look() // what cannot be read now is not taken for missing
	if _, ok := s.Log("renku", "waits", ""); ok {
		t.Error("it started on a Secret that nobody could read")
	}
	s.local.mu.Lock()
	s.local.denied = map[string]bool{}
	s.local.mu.Unlock()
	s.mount(map[string]string{"paris.yaml": text(kubeconfigOf(s.remote))})
	s.look()
	if log, _ := s.Log("renku", "waits", ""); !strings.Contains(log, "Successfully loaded") {
		t.Errorf("%s", log)
	}
}

func TestAPodThatIsNotReadyOrIsGone(t *testing.T) {
	s := newSite(t)
	s.addPod(dataService, "pod")
	pod := s.local.get(podsAt, "pod")
	s.local.put(podsAt, with(pod, object{"status": object{"conditions": []any{object{"type": "Ready", "status": "False"}}}}))
	s.look()
	if _, ok := s.Log("renku", "pod", ""); ok {
		t.Error("a pod that is not Ready has a log")
	}
	s.local.put(podsAt, pod)
	s.look()
	if _, ok := s.Log("renku", "pod", ""); !ok {
		t.Error("a pod that is Ready has no log")
	}
	s.local.remove(podsAt, "pod")
	s.look()
	if _, ok := s.Log("renku", "pod", ""); ok {
		t.Error("a pod that is gone has a log")
	}
}

// What a process has loaded stays as it was until another process starts.
func TestClustersAreLoadedOnceAProcess(t *testing.T) {
	s := newSite(t)
	s.mount(map[string]string{"bern.yaml": text(kubeconfigOf(s.remote))})
	s.restart(dataService)
	id := s.must(201, "POST", "/clusters", guideCluster()).object(t)["id"].(string)
	body := guidePool(id)
	s.look()
	refusals{{"before the restart", "", "/resource_pools", body, 404, "Could not find cluster with id " + id + " in the list of clusters."}}.play(t, s)
	s.restart("renku-k8s-watcher")
	refusals{{"after the restart of another service", "", "/resource_pools", body, 404, "Could not find cluster with id"}}.play(t, s)
	s.restart(dataService)
	s.must(201, "POST", "/resource_pools", body)
	// A newer process that does not load the cluster has it no longer.
	s.mount(map[string]string{})
	s.must(201, "POST", "/resource_pools", guidePoolNamed(id, "quota-two"))
	s.restart(dataService)
	s.must(404, "POST", "/resource_pools", guidePoolNamed(id, "quota-three"))
}

func TestTheWatchEndsWithTheStandIn(t *testing.T) {
	s := newSite(t)
	s.local.asked()
	s.look()
	if got := s.local.asked(); !slices.Equal(got, []string{"list pods"}) {
		t.Errorf("%q", got)
	}
	s.Close()
	select {
	case <-s.clock.waits:
		t.Error("it still waits to look")
	default:
	}
}

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
		"good":                       {good, ""},
		"YAML":                       {"current-context: x\ncontexts:\n- name: x\n  context: {cluster: c, user: u}\nclusters:\n- name: c\n  cluster: {server: 'https://x'}\nusers:\n- name: u\n  user: {token: t}\n", ""},
		"a tokenFile alone":          {user(object{"tokenFile": made}), ""},
		"no namespace":               {context(object{"cluster": "c", "user": "u"}), ""},
		"a CA that is no PEM":        {cluster(object{"server": "https://x", "certificate-authority-data": "eA=="}), ""},
		"no YAML":                    {"a: [", "the file is not YAML"},
		"a list":                     {"[]", "not a mapping"},
		"empty":                      {"", "not a mapping"},
		"a key of the wrong type":    {with(good, object{"contexts": "x"}), "contexts"},
		"no current-context":         {with(good, object{"current-context": nil}), "'current-context'"},
		"an empty current-context":   {with(good, object{"current-context": ""}), "current-context is empty"},
		"another current-context":    {with(good, object{"current-context": "x"}), `no context "x"`},
		"no cluster in the context":  {context(object{"user": "u"}), "'cluster'"},
		"no user in the context":     {context(object{"cluster": "c"}), "'user'"},
		"another cluster":            {context(object{"cluster": "x", "user": "u"}), `no cluster "x"`},
		"another user":               {context(object{"cluster": "c", "user": "x"}), `no user "x"`},
		"no server":                  {cluster(object{}), "'server'"},
		"a CA file":                  {cluster(object{"server": "https://x", "certificate-authority": "/etc/hosts"}), "No such file or directory: '/etc/hosts'"},
		"a CA that is no base64":     {cluster(object{"server": "https://x", "certificate-authority-data": "%"}), "certificate-authority-data is not base64"},
		"a certificate file":         {user(object{"client-certificate": "/etc/hosts"}), "No such file or directory: '/etc/hosts'"},
		"a key file":                 {user(object{"client-key": "/etc/hosts"}), "No such file or directory: '/etc/hosts'"},
		"a password":                 {user(object{"username": "a", "password": "b"}), "username and password are not supported"},
		"an auth-provider":           {user(object{"auth-provider": object{"name": "oidc"}}), "auth-provider"},
		"a program":                  {user(object{"exec": object{"apiVersion": "client.authentication.k8s.io/v1", "command": "touch", "args": []any{made}}}), "No such file or directory: 'touch'"},
		"a program, in the old form": {user(object{"exec": object{"apiVersion": "client.authentication.k8s.io/v1alpha1", "command": "touch", "args": []any{made}}}), "v1alpha1"},
	} {
		t.Run(name, func(t *testing.T) {
			data, isText := row.config.(string)
			if !isText {
				data = text(row.config)
			}
			log := newJournal("test", s.clock.now)
			c := load(log, map[string][]byte{"x.yaml": []byte(data)}, "x.yaml")
			lines := messages(log.String())
			last := lines[len(lines)-1]
			switch {
			case row.err == "" && (c == nil || last != "INFO Successfully loaded Kubernetes config: '/secrets/kube_configs/x.yaml'"):
				t.Errorf("not loaded: %s", last)
			case row.err != "" && (c != nil || !strings.HasPrefix(last, "WARNING Failed while loading '/secrets/kube_configs/x.yaml', ignoring kube config. Error: ") ||
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

// insecure-skip-tls-verify counts only beside a CA or a client certificate.
func TestWhomAKubeconfigTrusts(t *testing.T) {
	s := newSite(t)
	for name, row := range map[string]struct {
		keys     object
		insecure bool
		reached  bool
	}{
		"its CA":                       {object{}, false, true},
		"another CA":                   {object{"certificate-authority-data": b64(s.CA())}, false, false},
		"no CA":                        {object{"certificate-authority-data": nil}, false, false},
		"nothing, without a CA":        {object{"certificate-authority-data": nil, "insecure-skip-tls-verify": true}, false, false},
		"nothing, beside another CA":   {object{"certificate-authority-data": b64(s.CA()), "insecure-skip-tls-verify": true}, true, true},
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

func TestStartRefuses(t *testing.T) {
	local := newFakeCluster(t).config()
	for name, o := range map[string]Options{
		"no cluster":   {Namespace: "renku"},
		"no namespace": {Local: local},
		"no such fault": {
			Local: local, Namespace: "renku", Faults: map[string]bool{"nonsense": true},
		},
	} {
		if s, err := Start(t.Context(), o); err == nil {
			s.Close()
			t.Errorf("%s: it starts", name)
		}
	}
}

func TestItEnds(t *testing.T) {
	s := newSite(t)
	s.must(200, "GET", "/version", nil)
	host, port := s.SessionHost()
	if host != "localhost" || port == 0 {
		t.Errorf("%s %d", host, port)
	}
	s.client.CloseIdleConnections()
	s.Close()
	s.Close()
	client := http.Client{Transport: s.client.Transport, Timeout: time.Minute}
	if answer, err := client.Get("https://" + s.Domain() + apiPath + "/version"); err == nil {
		answer.Body.Close()
		t.Error("it still answers")
	}
}
