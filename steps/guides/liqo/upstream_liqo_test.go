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
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"carrick/cluster/chart"
	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/upstream"
)

// running is a cluster with Liqo.
type running struct {
	programs map[string]*upstream.Program // by name
	gateways *gateways                    // nil without networks
	address  string                       // of its API server, for the other cluster
	cut      func()                       // makes that address unreachable
}

// realLiqo installs the chart of a checkout and runs the programs of its Deployments. If nets is not nil, realLiqo also
// runs the gateways.
func realLiqo(
	t *testing.T, box *clustertest.Sandbox, src upstream.Checkout, bin, side, id string, nets *upstream.Networks,
) running {
	t.Helper()
	admin, err := clientcmd.LoadFromFile(box.Kubeconfigs[side])
	if err != nil {
		t.Fatal(err)
	}
	server := strings.TrimPrefix(admin.Clusters[admin.Contexts[box.Contexts[side]].Cluster].Server, "https://")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, cut := "https://"+l.Addr().String(), upstream.Forward(t, l, server)
	ports := freePorts(t, 3)
	certificate := webhookCertificate(t)
	install(t, box, src, side, map[string]any{
		"tag":       src.Version,
		"discovery": map[string]any{"config": map[string]any{"clusterID": id}},
		"apiServer": map[string]any{"address": address},
		"networking": map[string]any{
			"enabled":          nets != nil,
			"gatewayTemplates": map[string]any{"wireguard": map[string]any{"implementation": "userspace"}},
		},
		"storage":     map[string]any{"enabled": false},
		"metricAgent": map[string]any{"enable": false, "enabled": false},
		"telemetry":   map[string]any{"enabled": false},
		"ipam":        ranges[side],
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
			"liqo-controller-manager": append([]string{fmt.Sprintf("--ipam-server=127.0.0.1:%d", ports[2])}, local...),
			"ipam":                    {fmt.Sprintf("--port=%d", ports[2])},
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
	if nets != nil {
		out["ipam"] = run.Deployment(t, "liqo", "liqo-ipam", nil)
	}
	out["liqo-controller-manager"] = run.Deployment(t, "liqo", "liqo-controller-manager", nil)
	out["crd-replicator"] = run.Deployment(t, "liqo", "liqo-crd-replicator", nil)
	kubelets(t, run)
	var g *gateways
	if nets != nil {
		g = runGateways(t, run, nets, server)
	}
	return running{out, g, address, cut}
}

// ranges maps each side to the Helm values with its cluster's networks.
var ranges = map[string]map[string]any{
	clustertest.Local:  {"podCIDR": "10.244.0.0/16", "serviceCIDR": "10.96.0.0/16"},
	clustertest.Remote: {"podCIDR": "10.42.0.0/16", "serviceCIDR": "10.43.0.0/16"},
}

// install applies the manifests of a chart, except its Helm hooks. The API server calls the webhooks on this machine.
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
		case o.GetName() == "liqo-webhook-certs": // Liqo keeps an existing certificate (pkg/webhooks/secretcontroller)
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

// callHere makes an API server call webhooks on this machine instead of a Service.
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

// kubelets runs the virtual kubelets for which Liqo creates Deployments, while those Deployments exist.
func kubelets(t *testing.T, run upstream.Runner) {
	t.Helper()
	list := []string{"deployments", "-l", "offloading.liqo.io/component=virtual-kubelet"}
	whileThere(t, run, list, func(namespace, name string) (func(), error) {
		p, err := run.Start(t, namespace, name, nil)
		if err != nil {
			return nil, err
		}
		return p.End, nil
	})
}

// whileThere calls start for each object that kubectl lists, and end once the object no longer exists. If start fails,
// whileThere retries it.
func whileThere(
	t *testing.T, run upstream.Runner, list []string, start func(namespace, name string) (end func(), err error),
) {
	t.Helper()
	const names = `go-template={{range .items}}{{.metadata.namespace}}/{{.metadata.name}} {{end}}`
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	running, faults := map[string]func(){}, map[string]error{}
	look := func() {
		text, err := run.Kubectl(ctx, append(append([]string{"get"}, list...), "-A", "-o", names)...)
		if err != nil {
			return
		}
		there := map[string]bool{}
		for _, one := range strings.Fields(text) {
			there[one] = true
			if running[one] != nil {
				continue
			}
			namespace, name, _ := strings.Cut(one, "/")
			end, err := start(namespace, name)
			if faults[one] = err; err == nil {
				running[one] = end
			}
		}
		for one, end := range running {
			if !there[one] {
				end()
				delete(running, one)
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
	t.Cleanup(func() {
		cancel()
		<-done
		for one, err := range faults {
			if err != nil && t.Failed() {
				t.Logf("%s of %s: %v", one, run.Side, err)
			}
		}
	})
}

// webhookCertificate returns the data of the webhooks' Secret: a self-signed certificate and its key.
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

// freePorts returns ports of this machine on which no process listens.
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
