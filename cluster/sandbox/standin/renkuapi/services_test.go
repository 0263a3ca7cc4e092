package renkuapi

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// messages returns the level and the message of each line of a log.
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
	s.addPod(
		"renku-gateway", "renku-gateway-x",
		object{"name": configVolume, "secret": object{"secretName": "renku-remote-clusters"}},
	)
	s.look()
	const root = "/secrets/kube_configs/"
	want := []string{
		"INFO Trying to load Kubernetes config: '" + root + "paris.yaml'",
		"INFO Reading: '" + root + "paris.yaml'",
		"INFO Creating API for '" + root + "paris.yaml'",
		"INFO Creating cluster connection for '" + root + "paris.yaml'",
		"",
		"INFO Successfully loaded Kubernetes config: '" + root + "paris.yaml'",
		"INFO Trying to load Kubernetes config: '" + root + "bern.yaml'",
		"INFO Reading: '" + root + "bern.yaml'",
		"WARNING Failed while loading '" + root + "bern.yaml', ignoring kube config. " +
			"Error: [Errno 2] No such file or directory: '" + root + "bern.yaml'",
	}
	for app, client := range map[string]string{
		"renku-data-service": "cached k8s", "renku-k8s-watcher": "k8s", "renku-data-tasks": "cached k8s",
		"renku-secrets-storage": "k8s",
	} {
		log, ok := s.Log("renku", app+"-x", "service")
		want[4] = "INFO Creating " + client + " client for '" + root + "paris.yaml'"
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
	if got := messages(log); !ok || len(got) != 2 ||
		got[1] != "WARNING Cannot open directory '/secrets/kube_configs', ignoring kube configs..." {
		t.Errorf("%v\n%s", ok, log)
	}
}

func TestAPodWaitsForItsSecret(t *testing.T) {
	s := newSite(t)
	s.addPod(dataService, "waits", object{"name": configVolume, "secret": object{"secretName": "renku-remote-clusters"}})
	s.addPod(
		dataService, "does-not", object{"name": configVolume, "secret": object{"secretName": "nothing", "optional": true}},
	)
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
	s.local.put(
		podsAt, with(pod, object{"status": object{"conditions": []any{object{"type": "Ready", "status": "False"}}}}),
	)
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

// TestClustersAreLoadedOnceAProcess verifies that a process keeps the clusters that it has loaded until another process
// starts.
func TestClustersAreLoadedOnceAProcess(t *testing.T) {
	s := newSite(t)
	s.mount(map[string]string{"bern.yaml": text(kubeconfigOf(s.remote))})
	s.restart(dataService)
	id := s.must(201, "POST", "/clusters", guideCluster()).object(t)["id"].(string)
	body := guidePool(id)
	s.look()
	refusals{
		{
			"before the restart", "", "/resource_pools", body, 404,
			"Could not find cluster with id " + id + " in the list of clusters.",
		},
	}.play(t, s)
	s.restart("renku-k8s-watcher")
	refusals{
		{"after the restart of another service", "", "/resource_pools", body, 404, "Could not find cluster with id"},
	}.play(t, s)
	s.restart(dataService)
	s.must(201, "POST", "/resource_pools", body)
	// A newer process that does not load the cluster has it no longer.
	s.mount(map[string]string{})
	s.must(201, "POST", "/resource_pools", guidePoolNamed(id, "quota-two"))
	s.restart(dataService)
	s.must(404, "POST", "/resource_pools", guidePoolNamed(id, "quota-three"))
}

// TestNobodyWaitsForTheNextLook verifies that a request to the fake first updates the processes, so that clients need
// not wait for the next poll. A process that has already started does not load clusters that are registered later.
func TestNobodyWaitsForTheNextLook(t *testing.T) {
	s := newSite(t)
	volume := object{"name": configVolume, "secret": object{"secretName": "renku-remote-clusters"}}
	s.mount(map[string]string{"bern.yaml": text(kubeconfigOf(s.remote))})
	s.addPod(dataService, "too-early", volume)
	id := s.must(201, "POST", "/clusters", guideCluster()).object(t)["id"].(string)
	refusals{{"before", "", "/resource_pools", guidePool(id), 404, "Could not find cluster with id"}}.play(t, s)
	s.clock.advance(time.Minute)
	s.addPod(dataService, "in-time", volume)
	s.must(201, "POST", "/resource_pools", guidePool(id))
	s.addPod("renku-k8s-watcher", "watcher", volume)
	if log, ok := s.Log("renku", "watcher", ""); !ok ||
		!strings.Contains(log, "Successfully loaded Kubernetes config: '/secrets/kube_configs/bern.yaml'") {
		t.Errorf("%v %s", ok, log)
	}
	// It answers from what it knows when the local cluster does not.
	s.local.Close()
	if got := s.must(200, "GET", "/resource_pools/2", nil).object(t); got["quota"] == nil {
		t.Errorf("%v", got)
	}
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
