package walks

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// disturbance renews the certificate after a third of the claims, and kills the process after half of them. The process
// starts again once a claim was rejected.
type disturbance struct {
	third, half           chan struct{} // closed when so many claims are made
	killed, refused, back chan struct{} // closed in this order
	once                  sync.Once
	refusals              atomic.Int64
}

func newDisturbance() *disturbance {
	return &disturbance{
		third: make(chan struct{}), half: make(chan struct{}),
		killed: make(chan struct{}), refused: make(chan struct{}), back: make(chan struct{}),
	}
}

// of applies the disturbance to a process, and returns the renewed certificate.
func (d *disturbance) of(h *hooked) (certificate string) {
	<-d.third
	certificate = h.renew()
	<-d.half
	h.kill()
	close(d.killed)
	<-d.refused
	h.start()
	close(d.back)
	return certificate
}

// claim creates a claim, and retries if the extension did not respond, as a client does. The last third of the claims
// waits until the process is killed, so that some claims are rejected on any machine.
func (d *disturbance) claim(ctx context.Context, client dynamic.Interface, n int) error {
	if n > loadClaims*2/3 {
		<-d.killed
	}
	for {
		in := fmt.Sprintf("load-%d", n%loadSpaces)
		_, err := client.Resource(claimKind).Namespace(in).Create(ctx, theClaim(in, n), metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
			return err
		}
		d.refusals.Add(1)
		select {
		case <-d.killed:
			d.once.Do(func() { close(d.refused) })
			<-d.back
		case <-ctx.Done():
			return ctx.Err()
		default: // it was slow
		}
	}
}

// madeProfiles creates profiles and their namespaces. It creates every second profile after its namespace.
func madeProfiles(ctx context.Context, client dynamic.Interface) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for n := range loadProfiles {
		group.Go(func() error {
			name := fmt.Sprintf("user-%03d", n)
			both := []struct {
				kind schema.GroupVersionResource
				o    *unstructured.Unstructured
			}{{profileKind, theProfile(name)}, {namespaceKind, theSpace(name, name+"@example.org")}}
			if n%2 == 1 {
				slices.Reverse(both)
			}
			for _, b := range both {
				if _, err := client.Resource(b.kind).Create(ctx, b.o, metav1.CreateOptions{}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// shown returns the certificate that the extension presents, in PEM.
func (h *hooked) shown(t *testing.T) string {
	t.Helper()
	//nolint:gosec // it is what is looked at
	conn, err := tls.Dial("tcp", h.address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return string(
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: conn.ConnectionState().PeerCertificates[0].Raw}),
	)
}

func claimsAreRight(t *testing.T, client dynamic.Interface) {
	t.Helper()
	seen := 0
	for i := range loadSpaces {
		all, err := client.Resource(claimKind).Namespace(fmt.Sprintf("load-%d", i)).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all.Items {
			var n int
			if _, err := fmt.Sscanf(c.GetName(), "claim-%d", &n); err != nil {
				t.Fatal(err)
			}
			seen++
			if got, want := classOf(&c), sorts[n%len(sorts)].gets; got != want {
				t.Errorf("claim %s/%s (%v) has class %q, not %q", c.GetNamespace(), c.GetName(), sorts[n%len(sorts)], got, want)
			}
		}
	}
	if seen != loadClaims {
		t.Errorf("%d claims are there, of %d", seen, loadClaims)
	}
}

func profilesAreSeenTo(t *testing.T, client dynamic.Interface) {
	t.Helper()
	const mine = "app.kubernetes.io/managed-by=carrick-vsphere-extension"
	till(
		t, client.Resource(bindingKind), mine, "every namespace of a profile has its binding",
		func(all map[string]*unstructured.Unstructured) bool { return len(all) >= loadProfiles },
	)
	all, err := client.Resource(bindingKind).List(t.Context(), metav1.ListOptions{LabelSelector: mine})
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]int{}
	for _, b := range all.Items {
		in[b.GetNamespace()]++
		role, _, _ := unstructured.NestedString(b.Object, "roleRef", "name")
		whom, _, _ := unstructured.NestedSlice(b.Object, "subjects")
		if b.GetName() != "rb-all-sa_ns-"+b.GetNamespace() || role != "psp:load" || len(whom) != 1 ||
			whom[0].(map[string]any)["name"] != "system:serviceaccounts:"+b.GetNamespace() {
			t.Errorf("%v", b.Object)
		}
	}
	for n := range loadProfiles {
		if name := fmt.Sprintf("user-%03d", n); in[name] != 1 {
			t.Errorf("namespace %s has %d bindings", name, in[name])
		}
	}
	if len(in) != loadProfiles {
		t.Errorf("%d namespaces have a binding, of %d profiles", len(in), loadProfiles)
	}
	till(
		t, client.Resource(namespaceKind), "app.kubernetes.io/part-of=kubeflow-profile",
		"every namespace of a profile has its level", func(all map[string]*unstructured.Unstructured) bool {
			n := 0
			for _, ns := range all {
				if strings.HasPrefix(ns.GetName(), "user-") && ns.GetLabels()["pod-security.kubernetes.io/enforce"] == "baseline" {
					n++
				}
			}
			return n == loadProfiles
		},
	)
}
