package liqo_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"carrick/cluster/clustertest/upstream"
)

// gateways runs the gateways of one cluster's Liqo. Each gateway has a network namespace with the address of its load
// balancer.
type gateways struct {
	run    upstream.Runner
	nets   *upstream.Networks
	server string // HOST:PORT of the API server on this machine's loopback

	mu       sync.Mutex
	in       map[string]*upstream.Network            // by namespace/name of the Deployment
	programs map[string]map[string]*upstream.Program // by namespace/name of the Deployment, then by container
}

// runGateways runs the programs of each gateway's pod while the pod is running, and assigns addresses as a load
// balancer's controller does. The container geneve does not run, because it requires a kernel module.
func runGateways(t *testing.T, run upstream.Runner, nets *upstream.Networks, server string) *gateways {
	t.Helper()
	g := &gateways{
		run: run, nets: nets, server: server,
		in: map[string]*upstream.Network{}, programs: map[string]map[string]*upstream.Program{},
	}
	list := []string{
		"pods", "-l", "networking.liqo.io/component=gateway", "--field-selector", "status.phase=Running",
	}
	whileThere(t, run, list, func(namespace, pod string) (func(), error) { return g.start(t, namespace, pod) })
	return g
}

// of returns the program of a container of a gateway.
func (g *gateways) of(t *testing.T, deployment, container string) *upstream.Program {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.programs[deployment][container]
	if p == nil {
		t.Fatalf("no program %s of Deployment %s runs", container, deployment)
	}
	return p
}

func (g *gateways) start(t *testing.T, namespace, pod string) (end func(), err error) {
	name := pod[:strings.LastIndexByte(pod, '-')]
	name = name[:strings.LastIndexByte(name, '-')]
	at, err := g.network(t, namespace, name)
	if err != nil {
		return nil, err
	}
	keys, err := g.keys(t, namespace, name)
	if err != nil {
		return nil, err
	}
	run := g.run
	run.In = at
	run.More = maps.Clone(run.More)
	run.More["wireguard"] = []string{"--keys-dir=" + keys}
	started := map[string]*upstream.Program{}
	end = func() {
		for _, p := range started {
			p.End()
		}
	}
	for _, run.Container = range []string{"wireguard", "gateway"} {
		if started[run.Container], err = run.Start(t, namespace, name, nil); err != nil {
			delete(started, run.Container)
			end()
			return nil, err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.programs[namespace+"/"+name] = started
	return end, nil
}

// network returns the network namespace of a gateway. The gateway keeps its address when its pod is replaced.
func (g *gateways) network(t *testing.T, namespace, name string) (*upstream.Network, error) {
	at := g.in[namespace+"/"+name]
	if at == nil {
		var err error
		if at, err = g.nets.Add(t); err != nil {
			return nil, err
		}
		if err := at.Forward(t, g.server); err != nil {
			return nil, err
		}
		g.in[namespace+"/"+name] = at
	}
	service := []string{"-n", namespace, "get", "service", name, "--ignore-not-found", "-o", "jsonpath={.spec.type}"}
	kind, err := g.run.Kubectl(t.Context(), service...)
	if err != nil || kind != "LoadBalancer" {
		return at, err
	}
	status := fmt.Sprintf(`{"status":{"loadBalancer":{"ingress":[{"ip":%q}]}}}`, at.Address)
	_, err = g.run.Kubectl(t.Context(), "-n", namespace, "patch", "service", name,
		"--subresource=status", "--type=merge", "-p", status)
	return at, err
}

// keys writes the private key that a gateway's pod mounts into a folder, as the kubelet does.
func (g *gateways) keys(t *testing.T, namespace, name string) (dir string, err error) {
	const volume = `jsonpath={.spec.template.spec.volumes[?(@.name=="wireguard-config")].secret.secretName}`
	secret, err := g.run.Kubectl(t.Context(), "-n", namespace, "get", "deployment", name, "-o", volume)
	if err != nil {
		return "", err
	}
	text, err := g.run.Kubectl(t.Context(), "-n", namespace, "get", "secret", secret, "-o", "jsonpath={.data.privateKey}")
	if err != nil {
		return "", err
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", err
	}
	dir = t.TempDir()
	return dir, os.WriteFile(filepath.Join(dir, "privateKey"), key, 0o600)
}
