package liqo_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"carrick/cluster"
	"carrick/cluster/chart"
	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/upstream"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/liqo"
	"carrick/steps/stepstest"
)

// TestUpstreamPeering peers two clusters that run Liqo's own controllers, replicator, webhooks and virtual kubelet, with
// the RBAC of its chart.
func TestUpstreamPeering(t *testing.T) {
	src := upstream.Find(t, "liqo")
	bin := src.Build(t, "./cmd/liqo-controller-manager", "./cmd/crd-replicator", "./cmd/webhook", "./cmd/virtual-kubelet", "./cmd/liqoctl")
	box := clustertest.Start(t)
	box.Reset(t)
	consumer := realLiqo(t, box, src, bin, clustertest.Local, "milan")
	provider := realLiqo(t, box, src, bin, clustertest.Remote, "rome")
	without := func(more map[string]any) map[string]any {
		answers := map[string]any{"network.join": false}
		maps.Copy(answers, more)
		return answers
	}
	open := func(t *testing.T, more map[string]any) *engine.Session {
		return stepstest.Open(t, box, liqo.Guide(), assets, "upstream", without(more))
	}
	src.Try(t, "offloading without networks: apply, check, undo to nothing", func(t *testing.T) {
		stepstest.Cycle(t, box, liqo.Guide(), assets, "upstream", without(nil), madeForRequests)
	})
	src.Try(t, "a pod of the consumer runs on the provider", func(t *testing.T) {
		s := open(t, nil)
		stepstest.Apply(t, s)
		stepstest.Green(t, s)
		box.Run(t, clustertest.Local, "", "-n", "demo", "run", "web", "--image", "nginx",
			`--overrides={"spec":{"nodeSelector":{"liqo.io/type":"virtual-node"}}}`)
		box.Run(t, clustertest.Local, "", "-n", "demo", "wait", "--for=condition=Ready", "pod/web", "--timeout=120s")
		box.Run(t, clustertest.Remote, "", "-n", "demo-milan", "get", "pod", "web")
		box.Run(t, clustertest.Local, "", "-n", "demo", "delete", "pod", "web", "--timeout=120s")
	})
	src.Try(t, "a Tenant is drained, and active again once the replicator restarts", func(t *testing.T) {
		stepstest.Apply(t, open(t, map[string]any{"tenant.condition": "Drained"}))
		s := open(t, nil)
		stepstest.Apply(t, s)
		r := fails(t, s, "slice-copied", steps.Remote)
		const restart = "rollout restart deployment -l app.kubernetes.io/name=crd-replicator"
		if r.Status != steps.Fail || !strings.Contains(r.Fix, restart) {
			t.Errorf("slice-copied: %s %s; %s", r.Status, r.Found, r.Fix)
		}
		consumer.programs["crd-replicator"].Restart(t)
		stepstest.Green(t, s)
	})
	src.Try(t, "a request with another key is denied, and mended by its fix", func(t *testing.T) {
		s := open(t, nil)
		undone, err := s.PlanUndo(t.Context(), engine.Scope{Steps: []string{"offloading", "resources"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Undo(t.Context(), undone, nil); err != nil {
			t.Fatal(err)
		}
		box.Run(t, clustertest.Local, "", "-n", "liqo", "delete", "secret", "authentication-keys")
		consumer.programs["liqo-controller-manager"].Restart(t)
		_ = s.Apply(t.Context(), planOf(t, s), steps.ApplyOptions{}, nil) // what waits for the slice can't be done
		r := fails(t, s, "slice-accepted", steps.Local)
		const earlier = "Secret liqo-remote-certificate-rome there holds the certificate of an earlier request"
		if r.Status != steps.Fail || !strings.Contains(r.Found, earlier) {
			t.Fatalf("slice-accepted: %s %s; %s", r.Status, r.Found, r.Fix)
		}
		box.Run(t, clustertest.Remote, "", "-n", "liqo-tenant-milan", "delete", "secret", "liqo-remote-certificate-rome")
		box.Run(t, clustertest.Remote, "", "-n", "liqo-tenant-milan", "delete", "resourceslices.authentication.liqo.io", "rome")
		settled(t, s, "virtual-node", steps.Local)
		stepstest.Apply(t, s)
		stepstest.Green(t, s)
	})
	src.Try(t, "undo leaves nothing of the peering", func(t *testing.T) {
		stepstest.Undo(t, open(t, nil))
		for _, side := range []string{clustertest.Local, clustertest.Remote} {
			left := box.Run(t, side, "", "get", "namespaces,foreignclusters.core.liqo.io",
				"-l", "liqo.io/remote-cluster-id", "-o", "name")
			if left != "" {
				t.Errorf("%s: %s", side, left)
			}
		}
	})
	src.Try(t, "a peering by liqoctl is adopted, and both call it healthy", func(t *testing.T) {
		liqoctl := func(args ...string) string {
			t.Helper()
			at := []string{"--kubeconfig", box.Kubeconfigs[clustertest.Local], "--context", box.Contexts[clustertest.Local]}
			out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "liqoctl"), append(args, at...)...).CombinedOutput()
			if err != nil {
				t.Fatalf("liqoctl %s: %v\n%s", strings.Join(args, " "), err, out)
			}
			return string(out)
		}
		remote := []string{"--remote-kubeconfig", box.Kubeconfigs[clustertest.Remote], "--remote-context", box.Contexts[clustertest.Remote]}
		liqoctl(append([]string{"peer", "--networking-disabled", "--timeout", "3m"}, remote...)...)
		box.Run(t, clustertest.Local, "", "create", "namespace", "shop")
		liqoctl("offload", "namespace", "shop", "--timeout", "2m")
		x := stepstest.SiteOf(t, box, liqo.Guide(), assets, true, nil)
		bad := map[string]steps.Result{}
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(time.Second) { // what liqoctl does not wait for
			bad = x.Reds()
			maps.DeleteFunc(bad, func(_ string, v steps.Result) bool { return v.Status == steps.Warn })
			if len(bad) == 0 {
				break
			}
		}
		for id, v := range bad {
			t.Errorf("%s: %s: %s", id, v.Status, v.Found)
		}
		if said := liqoctl("info", "peer", "rome", "--output", "yaml"); strings.Count(said, "status: Healthy") < 2 || strings.Contains(said, "Unhealthy") { // credentials and nodes
			t.Errorf("liqoctl says\n%s", said)
		}
		liqoctl("unoffload", "namespace", "shop", "--skip-confirm")
		liqoctl(append([]string{"unpeer", "--skip-confirm", "--delete-namespaces", "--timeout", "3m"}, remote...)...)
	})
	src.Try(t, "with the provider gone, undo leaves nothing on the consumer", func(t *testing.T) {
		answers := map[string]any{"provider.server": provider.address}
		stepstest.Apply(t, open(t, answers))
		for _, p := range provider.programs {
			p.End()
		}
		provider.cut()
		s := stepstest.OpenWith(t, liqo.Guide(), assets, "upstream", without(answers), map[steps.Side]engine.End{
			steps.Local: {Cluster: box.Open(t, clustertest.Local, cluster.Options{}), Name: box.Contexts[clustertest.Local]},
		})
		stepstest.Undo(t, s)
		left := box.Run(t, clustertest.Local, "", "get", "namespaces,foreignclusters.core.liqo.io", "-l", "liqo.io/remote-cluster-id", "-o", "name")
		if left != "" {
			t.Errorf("the consumer has %s", left)
		}
	})
}

func planOf(t *testing.T, s *engine.Session) *engine.Plan {
	t.Helper()
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fails is what a check says once it fails.
func fails(t *testing.T, s *engine.Session, check string, side steps.Side) steps.Result {
	t.Helper()
	return once(t, s, check, side, func(v steps.Status) bool { return v == steps.Fail })
}

// madeForRequests are what Liqo's controllers leave of requests that they have signed: Kubernetes deletes them within the
// hour.
func madeForRequests(name string) bool {
	return strings.Contains(name, " certificatesigningrequests.certificates.k8s.io ")
}

// running is a cluster with Liqo.
type running struct {
	programs map[string]*upstream.Program // by name
	address  string                       // of its API server, for the other cluster
	cut      func()                       // makes that address unreachable
}

// realLiqo installs the chart of a checkout and runs what its Deployments would run.
func realLiqo(t *testing.T, box *clustertest.Sandbox, src upstream.Checkout, bin, side, id string) running {
	t.Helper()
	admin, err := clientcmd.LoadFromFile(box.Kubeconfigs[side])
	if err != nil {
		t.Fatal(err)
	}
	server := admin.Clusters[admin.Contexts[box.Contexts[side]].Cluster].Server
	address, cut := forwarded(t, server)
	ports := freePorts(t, 2)
	certificate := webhookCertificate(t)
	install(t, box, src, side, map[string]any{
		"tag":         src.Version,
		"discovery":   map[string]any{"config": map[string]any{"clusterID": id}},
		"apiServer":   map[string]any{"address": address},
		"networking":  map[string]any{"enabled": false},
		"storage":     map[string]any{"enabled": false},
		"metricAgent": map[string]any{"enable": false, "enabled": false},
		"telemetry":   map[string]any{"enabled": false},
		"ipam":        map[string]any{"podCIDR": "10.200.0.0/16", "serviceCIDR": "10.96.0.0/12"},
		"proxy":       map[string]any{"enabled": false},
		"controllerManager": map[string]any{"config": map[string]any{
			"enableResourceEnforcement": false, "defaultLimitsEnforcement": "None",
		}},
	}, fmt.Sprintf("https://127.0.0.1:%d", ports[0]), certificate)
	local := []string{"--metrics-address=0", "--health-probe-address=0"}
	run := upstream.Runner{
		Box: box, Side: side, Bin: bin,
		Env: map[string]string{"CLUSTER_ID": id},
		More: map[string][]string{
			"liqo-controller-manager": local,
			"webhook":                 append([]string{fmt.Sprintf("--webhook-port=%d", ports[0]), "--secret-name="}, local...),
			"crd-replicator":          {"--metrics-address=0"},
			"virtual-kubelet": {
				"--metrics-enabled=false", "--certificate-type=self-signed", fmt.Sprintf("--listen-port=%d", ports[1]),
			},
		},
	}
	out := map[string]*upstream.Program{}
	out["webhook"] = run.Deployment(t, "liqo", "liqo-webhook", func(dir string) {
		at := filepath.Join(dir, "k8s-webhook-server", "serving-certs")
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, data := range certificate {
			if err := os.WriteFile(filepath.Join(at, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	})
	out["liqo-controller-manager"] = run.Deployment(t, "liqo", "liqo-controller-manager", nil)
	out["crd-replicator"] = run.Deployment(t, "liqo", "liqo-crd-replicator", nil)
	kubelets(t, run)
	return running{out, address, cut}
}

// forwarded is another address of an API server, until cut is called or the test ends.
func forwarded(t *testing.T, server string) (address string, cut func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	to := strings.TrimPrefix(server, "https://")
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				out, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
				if err != nil {
					return
				}
				defer out.Close()
				defer context.AfterFunc(ctx, func() { in.Close(); out.Close() })()
				go func() {
					_, _ = io.Copy(out, in)
					out.Close()
				}()
				_, _ = io.Copy(in, out)
			}()
		}
	}()
	cut = func() {
		l.Close()
		cancel()
	}
	t.Cleanup(cut)
	return "https://" + l.Addr().String(), cut
}

// install applies what a chart makes, but for hooks. The webhooks are called on this machine.
func install(
	t *testing.T, box *clustertest.Sandbox, src upstream.Checkout, side string, values map[string]any, webhooks string,
	certificate map[string][]byte,
) {
	t.Helper()
	c, err := chart.Load(t.Context(), chart.Source(filepath.Join(src.Dir, "deployments", "liqo")), "liqo", "")
	if err != nil {
		t.Fatal(err)
	}
	r, err := chart.Render(t.Context(), c, "liqo", "liqo", values)
	if err != nil {
		t.Fatal(err)
	}
	box.Run(t, side, "", "create", "namespace", "liqo")
	t.Cleanup(func() {
		box.Cleanup(t, side, "delete", "validatingwebhookconfigurations,mutatingwebhookconfigurations",
			"-l", "liqo.io/webhook=true")
	})
	box.Run(t, side, documents(t, r.CRDs), "apply", "--server-side", "-f", "-")
	box.Run(t, side, "", "wait", "--for=condition=Established", "--all", "crd", "--timeout=120s")
	for _, o := range r.Objects {
		switch {
		case strings.HasSuffix(o.GetKind(), "WebhookConfiguration"):
			callHere(t, o, webhooks, certificate["ca"])
		case o.GetName() == "liqo-webhook-certs": // whoever finds it filled keeps it (pkg/webhooks/secretcontroller)
			o.Object["data"] = certificate
		}
	}
	box.Run(t, side, documents(t, r.Objects), "-n", "liqo", "apply", "--server-side", "-f", "-")
}

func documents(t *testing.T, objs []*unstructured.Unstructured) string {
	t.Helper()
	var out strings.Builder
	for _, o := range objs {
		text, err := json.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n" + string(text) + "\n")
	}
	return out.String()
}

// callHere has an API server call webhooks on this machine in place of a Service.
func callHere(t *testing.T, o *unstructured.Unstructured, at string, authority []byte) {
	t.Helper()
	hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
	for _, h := range hooks {
		hook := h.(map[string]any)
		path, _, _ := unstructured.NestedString(hook, "clientConfig", "service", "path")
		hook["clientConfig"] = map[string]any{"url": at + path, "caBundle": base64.StdEncoding.EncodeToString(authority)}
	}
	if err := unstructured.SetNestedSlice(o.Object, hooks, "webhooks"); err != nil {
		t.Fatal(err)
	}
}

// kubelets runs the virtual kubelets that Liqo makes Deployments for, as long as those are there.
func kubelets(t *testing.T, run upstream.Runner) {
	t.Helper()
	type at struct{ namespace, name string }
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	running := map[at]*upstream.Program{}
	look := func() {
		text, err := run.Kubectl(ctx, "get", "deployments", "-A", "-l", "offloading.liqo.io/component=virtual-kubelet",
			"-o", `go-template={{range .items}}{{.metadata.namespace}}/{{.metadata.name}} {{end}}`)
		if err != nil {
			return // it is asked again
		}
		there := map[at]bool{}
		for _, one := range strings.Fields(text) {
			namespace, name, _ := strings.Cut(one, "/")
			there[at{namespace, name}] = true
			if running[at{namespace, name}] != nil {
				continue
			}
			if p, err := run.Start(t, namespace, name, nil); err == nil { // else it may be gone again
				running[at{namespace, name}] = p
			}
		}
		for k, p := range running {
			if !there[k] {
				p.End()
				delete(running, k)
			}
		}
	}
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
				look()
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// webhookCertificate is a certificate for the webhooks that is its own authority, with its key, as their Secret holds them.
func webhookCertificate(t *testing.T) map[string][]byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "liqo-webhook"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"liqo-webhook.liqo.svc", "liqo-webhook.liqo.svc.cluster.local"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err1 := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	private, err2 := x509.MarshalPKCS8PrivateKey(key)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return map[string][]byte{
		"ca": certificate, "tls.crt": certificate,
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

// freePorts are ports of this machine that nothing listens on.
func freePorts(t *testing.T, n int) []int {
	t.Helper()
	var out []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		out = append(out, l.Addr().(*net.TCPAddr).Port)
	}
	return out
}
