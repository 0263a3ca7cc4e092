package livetest

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func seedPairs(t *testing.T, fault string) {
	t.Helper()
	t.Cleanup(func() { shared.must(t, "reset") })
	shared.must(t, strings.TrimSpace("seed liqo "+fault))
}

func TestLiqoConnects(t *testing.T) {
	seedPairs(t, "")
	p, balanced := newPair(t, "good"), newPair(t, "balanced")
	set(t, balanced.remote["GatewayServer"], "LoadBalancer", "spec", "endpoint", "serviceType")
	set(t, balanced.remote["GatewayServer"], balanced.port, "spec", "endpoint", "port")
	unstructured.RemoveNestedField(balanced.remote["GatewayServer"].Object, "spec", "endpoint", "nodePort")
	p.create(t)
	p.fares(t, "Connected")
	for _, c := range []struct{ side, kind, want, fields string }{
		{"local", "Configuration", "[10.43.0.0/16]", "status remote cidr external"},
		{"local", "Configuration", "[10.42.0.0/16]", "status remote cidr pod"},
		{"remote", "Configuration", "[10.43.0.0/16]", "status remote cidr external"},
		{"remote", "GatewayServer", "[127.0.0.1]", "status endpoint addresses"},
		{"remote", "GatewayServer", fmt.Sprint(p.port), "status endpoint port"},
		{"remote", "GatewayServer", "keys", "status secretRef name"},
		{"local", "GatewayClient", "WgGatewayClient", "status clientRef kind"},
	} {
		eventually(t, happens, func() error {
			if got := p.field(t, c.side, c.kind, p.id, strings.Fields(c.fields)...); got != c.want {
				return fmt.Errorf("%s %s: %s is %q, want %q", c.side, c.kind, c.fields, got, c.want)
			}
			return nil
		})
	}
	balanced.create(t)
	balanced.fares(t, "Connected")
	keys, err := shared.client(t, "local").CoreV1().Secrets(p.space()).Get(t.Context(), "keys", metav1.GetOptions{})
	if err != nil || keys.Labels["networking.liqo.io/gateway-resource"] != "true" {
		t.Errorf("the label of the keys was not added: %v", err)
	}
	if bound(int(p.port)) == nil {
		t.Error("nobody listens on the node port")
	}
	p.remove(t, "remote", "GatewayServer")
	eventually(t, happens, func() error {
		if now := p.connection(t, "local"); now != "Error" {
			return fmt.Errorf("the server is gone and the client %s", now)
		}
		return bound(int(p.port))
	})
	p.make(t, "remote", p.remote["GatewayServer"])
	p.fares(t, "Connected")
	p.remove(t, "local", "Configuration")
	eventually(t, happens, func() error {
		left, err := p.clients["local"].Resource(liqoNetworks).Namespace(p.space()).List(t.Context(), metav1.ListOptions{})
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("%d Networks are left", len(left.Items))
		}
		return err
	})
	shared.must(t, "reset")
	if err := bound(int(p.port)); err != nil {
		t.Errorf("after the reset: %v", err)
	}
}

func (p *pair) remove(t *testing.T, side, kind string) {
	t.Helper()
	if err := p.clients[side].Resource(pairResources[kind]).Namespace(p.space()).Delete(
		t.Context(), p.id, metav1.DeleteOptions{},
	); err != nil {
		t.Fatal(err)
	}
}

// spoiled lists pairs that never connect. spoil breaks the pair, and shows verifies the visible effect.
var spoiled = []struct {
	id    string
	spoil func(t *testing.T, p *pair)
	shows func(t *testing.T, p *pair) error
}{
	{"own-key", func(t *testing.T, p *pair) {
		p.local["PublicKey"].Object["spec"] = map[string]any{
			"publicKey": p.local["Secret"].Object["data"].(map[string]any)["publicKey"],
		}
	}, state("local", "Error")},
	{"wrong-port", func(t *testing.T, p *pair) {
		set(t, p.local["GatewayClient"], freeNodePort(t), "spec", "endpoint", "port")
	}, state("local", "Error")},
	{"short-key", func(t *testing.T, p *pair) {
		set(t, p.local["Secret"], base64.StdEncoding.EncodeToString(make([]byte, 31)), "data", "privateKey")
	}, crashes("local")},
	{"short-public", func(t *testing.T, p *pair) {
		set(t, p.remote["PublicKey"], base64.StdEncoding.EncodeToString(make([]byte, 31)), "spec", "publicKey")
	}, panics("remote")},
	{
		"no-public-label", func(t *testing.T, p *pair) { unlabel(p.local["PublicKey"], "liqo.io/remote-cluster-id") },
		state("local", ""),
	},
	{"no-configuration-label", func(t *testing.T, p *pair) {
		unlabel(p.local["Configuration"], "liqo.io/remote-cluster-id")
		unlabel(p.local["GatewayClient"], "liqo.io/remote-cluster-id")
	}, absent("local", "Configuration", "status")},
	{"no-external", func(t *testing.T, p *pair) {
		unstructured.RemoveNestedField(p.local["Configuration"].Object, "spec", "remote", "cidr", "external")
		unlabel(p.local["GatewayClient"], "liqo.io/remote-cluster-id")
	}, func(t *testing.T, p *pair) error {
		if got := p.field(
			t, "local", "Configuration", p.id, "status", "conditions",
		); !strings.Contains(got, "reason:WaitingForNetworks status:False") {
			return fmt.Errorf("conditions: %s", got)
		}
		return nil
	}},
	{"half-a-secret", func(t *testing.T, p *pair) {
		unstructured.RemoveNestedField(p.remote["Secret"].Object, "data", "publicKey")
	}, warns("remote", "KeysSecretCheckFailed")},
	{
		"keys-of-another", func(t *testing.T, p *pair) { label(p.remote["Secret"], "liqo.io/remote-cluster-id", "oslo") },
		warns("remote", "KeysSecretCheckFailed"),
	},
	{"no-such-template", func(t *testing.T, p *pair) {
		set(t, p.remote["GatewayServer"], "nothing", "spec", "serverTemplateRef", "name")
	}, absent("remote", "GatewayServer", "status")},
	{"port-out-of-range", func(t *testing.T, p *pair) {
		set(t, p.remote["GatewayServer"], int64(51840), "spec", "endpoint", "nodePort")
	}, absent("remote", "GatewayServer", "status", "endpoint")},
	{"restricted", func(t *testing.T, p *pair) {
		label(p.remote["Namespace"], "pod-security.kubernetes.io/enforce", "baseline")
	}, func(t *testing.T, p *pair) error {
		d, err := shared.client(t, "remote").AppsV1().Deployments(p.space()).Get(t.Context(), "gw-"+p.id, metav1.GetOptions{})
		if err == nil && !strings.Contains(fmt.Sprint(d.Status.Conditions), "violates PodSecurity") {
			err = fmt.Errorf("conditions: %v", d.Status.Conditions)
		}
		return err
	}},
	{"two-gateways", func(t *testing.T, p *pair) {
		client := p.local["GatewayClient"].DeepCopy()
		client.SetName("second")
		p.remote["GatewayClient"] = client
	}, absent("remote", "GatewayServer", "status", "endpoint")},
}

// TestLiqoConnectsNothingThatIsSpoiled creates a correct pair last. Once the correct pair is connected, the others have
// had enough time to connect.
func TestLiqoConnectsNothingThatIsSpoiled(t *testing.T) {
	seedPairs(t, "")
	var pairs []*pair
	for _, s := range spoiled {
		p := newPair(t, s.id)
		s.spoil(t, p)
		p.create(t)
		pairs = append(pairs, p)
	}
	for i, s := range spoiled {
		eventually(t, happens, func() error {
			if err := s.shows(t, pairs[i]); err != nil {
				return fmt.Errorf("%s: %w", s.id, err)
			}
			return nil
		})
	}
	good := newPair(t, "good")
	good.create(t)
	good.fares(t, "Connected")
	for i, s := range spoiled {
		if a, b := pairs[i].connection(t, "local"), pairs[i].connection(t, "remote"); s.id != "two-gateways" &&
			(a == "Connected" || b == "Connected") {
			t.Errorf("%s: %q and %q", s.id, a, b)
		}
		if err := s.shows(t, pairs[i]); err != nil {
			t.Errorf("%s: later %v", s.id, err)
		}
	}
	mend := pairs[2] // a Secret that is mended is enough
	patch := []byte(`{"data":{"privateKey":"` + base64.StdEncoding.EncodeToString(curve(t).Bytes()) + `"}}`)
	if _, err := mend.clients["local"].Resource(pairResources["Secret"]).Namespace(mend.space()).
		Patch(t.Context(), "keys", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, happens, func() error { return state("local", "Error")(t, mend) })
}

func set(t *testing.T, o *unstructured.Unstructured, value any, fields ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(o.Object, value, fields...); err != nil {
		t.Fatal(err)
	}
}

func state(side, want string) func(*testing.T, *pair) error {
	return func(t *testing.T, p *pair) error {
		if now := p.connection(t, side); now != want {
			return fmt.Errorf("the connection is %q", now)
		}
		return nil
	}
}

func absent(side, kind string, fields ...string) func(*testing.T, *pair) error {
	return func(t *testing.T, p *pair) error {
		if now := p.field(t, side, kind, p.id, fields...); now != "" && now != "map[]" {
			return fmt.Errorf("%v is %s", fields, now)
		}
		return nil
	}
}

func crashes(side string) func(*testing.T, *pair) error {
	return func(t *testing.T, p *pair) error {
		pods, err := shared.client(t, side).CoreV1().Pods(p.space()).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(pods.Items) != 1 {
			return fmt.Errorf("%d pods, %w", len(pods.Items), err)
		}
		for _, c := range pods.Items[0].Status.ContainerStatuses {
			if c.State.Waiting != nil && c.State.Waiting.Reason == "CrashLoopBackOff" {
				return nil
			}
		}
		return fmt.Errorf("no container waits: %v", pods.Items[0].Status.ContainerStatuses)
	}
}

// panics returns a check that a gateway has logged a panic, is still running, and has no Connection.
func panics(side string) func(*testing.T, *pair) error {
	return func(t *testing.T, p *pair) error {
		pods, err := shared.client(t, side).CoreV1().Pods(p.space()).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(pods.Items) != 1 || pods.Items[0].Status.Phase != corev1.PodRunning {
			return fmt.Errorf("pods: %v, %w", pods.Items, err)
		}
		log, err := shared.client(t, side).CoreV1().Pods(p.space()).
			GetLogs(pods.Items[0].Name, &corev1.PodLogOptions{Container: "wireguard"}).DoRaw(t.Context())
		if err != nil || !strings.Contains(string(log), "panic: the public key has 31 bytes") {
			return fmt.Errorf("the log: %s, %w", log, err)
		}
		return state(side, "")(t, p)
	}
}

func warns(side, reason string) func(*testing.T, *pair) error {
	return func(t *testing.T, p *pair) error {
		events, err := shared.client(t, side).CoreV1().Events(p.space()).List(
			t.Context(), metav1.ListOptions{FieldSelector: "reason=" + reason},
		)
		if err != nil || len(events.Items) != 1 || events.Items[0].Type != corev1.EventTypeWarning {
			return fmt.Errorf("%d events, %w", len(events.Items), err)
		}
		return nil
	}
}
