package walks

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"carrick/cluster/clustertest"
	"carrick/cmd/carrick/carricktest"
)

var (
	claimKind     = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	namespaceKind = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	bindingKind   = schema.GroupVersionResource{
		Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings",
	}
	profileKind = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "profiles"}
)

func rbacType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: kind}
}

func objectMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// profileCRD has the part of Kubeflow's CRD that the extension reads.
const profileCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: profiles.kubeflow.org}
spec:
  group: kubeflow.org
  scope: Cluster
  names: {kind: Profile, plural: profiles, singular: profile, listKind: ProfileList}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

const loadClasses = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: load-policy, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: example.org/none
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: nfs-client}
provisioner: example.org/nothing
`

// ground returns a cluster of the sandbox with Kubeflow's CRD and two StorageClasses.
func ground(t *testing.T) (*clustertest.Sandbox, dynamic.Interface) {
	t.Helper()
	box := clustertest.Start(t)
	box.Reset(t)
	box.Run(t, clustertest.Local, loadClasses, "apply", "-f", "-")
	config, err := clientcmd.BuildConfigFromFlags("", box.Kubeconfigs[clustertest.Local])
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return box, client
}

func defineProfiles(t *testing.T, box *clustertest.Sandbox) {
	t.Helper()
	box.Run(t, clustertest.Local, profileCRD, "apply", "-f", "-")
	box.Run(t, clustertest.Local, "", "wait", "--for=create", "--timeout=10m", "crd/profiles.kubeflow.org")
	box.Run(t, clustertest.Local, "", "wait", "--for=condition=established", "--timeout=10m", "crd/profiles.kubeflow.org")
}

// register makes the API server send reviews of claims in namespaces of profiles to the extension. If the extension
// does not respond, the API server rejects the claim.
func register(t *testing.T, box *clustertest.Sandbox, h *hooked) {
	t.Helper()
	registerAt(t, box, h, `{url: "https://`+h.address+`/pvc/mutate", caBundle: %s}`)
}

// registerAt is like register, with the given client configuration, into which it writes the CA.
func registerAt(t *testing.T, box *clustertest.Sandbox, h *hooked, at string) {
	t.Helper()
	box.Run(t, clustertest.Local, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: mutating.vsphere-extensions.keeyzar.de}
webhooks:
  - name: mutating.vsphere-extensions.keeyzar.de
    rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [persistentvolumeclaims], scope: Namespaced}]
    namespaceSelector: {matchLabels: {app.kubernetes.io/part-of: kubeflow-profile}}
    clientConfig: %s
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Fail
    timeoutSeconds: 5
`, fmt.Sprintf(at, base64.StdEncoding.EncodeToString(h.ca.Cert))), "apply", "-f", "-")
}

func anObject(apiVersion, kind, namespace, name string, more map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	for k, v := range more {
		o.Object[k] = v
	}
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func theProfile(name string) *unstructured.Unstructured {
	return anObject(
		"kubeflow.org/v1", "Profile", "", name,
		map[string]any{"spec": map[string]any{"owner": map[string]any{"kind": "User", "name": name + "@example.org"}}},
	)
}

func theSpace(name, owner string) *unstructured.Unstructured {
	o := anObject("v1", "Namespace", "", name, nil)
	o.SetAnnotations(map[string]string{"owner": owner})
	o.SetLabels(map[string]string{"app.kubernetes.io/part-of": "kubeflow-profile"})
	return o
}

// sorts lists claims, with the StorageClass that each must get.
var sorts = []struct {
	mode, class string // class "-": none is named
	gets        string
}{
	{"ReadWriteMany", "-", "nfs-client"},
	{"ReadWriteMany", "load-policy", "nfs-client"},
	{"ReadWriteMany", "", ""},
	{"ReadWriteMany", "other", "other"},
	{"ReadWriteOnce", "load-policy", "load-policy"},
	{"ReadWriteOnce", "-", "load-policy"},
}

func theClaim(namespace string, n int) *unstructured.Unstructured {
	s := sorts[n%len(sorts)]
	spec := map[string]any{
		"accessModes": []any{s.mode}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
	}
	if s.class != "-" {
		spec["storageClassName"] = s.class
	}
	return anObject("v1", "PersistentVolumeClaim", namespace, fmt.Sprintf("claim-%04d", n), map[string]any{"spec": spec})
}

func classOf(o *unstructured.Unstructured) string {
	c, _, _ := unstructured.NestedString(o.Object, "spec", "storageClassName")
	return c
}

// till watches a kind until done returns true for all its objects.
func till(
	t *testing.T, of dynamic.ResourceInterface, selector, what string,
	done func(map[string]*unstructured.Unstructured) bool,
) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	list, err := of.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		all[list.Items[i].GetNamespace()+"/"+list.Items[i].GetName()] = &list.Items[i]
	}
	w, err := of.Watch(ctx, metav1.ListOptions{LabelSelector: selector, ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for !done(all) {
		e, ok := <-w.ResultChan()
		o, is := e.Object.(*unstructured.Unstructured)
		if !ok || !is {
			t.Fatalf("%s: not so in time, %d are there: %v", what, len(all), e.Object)
		}
		if e.Type == watch.Deleted {
			delete(all, o.GetNamespace()+"/"+o.GetName())
		} else {
			all[o.GetNamespace()+"/"+o.GetName()] = o
		}
	}
}

// active waits until the API server sends reviews, which takes a moment after the registration.
func active(t *testing.T, client dynamic.Interface, namespace string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for {
		got, err := client.Resource(claimKind).Namespace(namespace).Create(
			ctx, theClaim(namespace, 0), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}},
		)
		if err == nil && classOf(got) == "nfs-client" {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("the API server does not ask the extension: %v, %v", got, err)
		}
	}
}

const (
	loadClaims   = 1000
	loadProfiles = 200
	loadSpaces   = 5 // of the claims
)

// A thousand claims and two hundred profiles are created at once. Meanwhile the certificate is renewed, and the
// extension is killed and restarted. Every claim gets its StorageClass, and every namespace its binding and its pod
// security level.
func extensionUnderLoad(t *testing.T) {
	box, client := ground(t)
	defineProfiles(t, box)
	h := hook(t, box, carricktest.Program(t))
	for i := range loadSpaces {
		mustMake(t, client, namespaceKind, theSpace(fmt.Sprintf("load-%d", i), "nobody"))
	}
	register(t, box, h)
	active(t, client, "load-0")
	addedByAdmission(t, client)
	var done atomic.Int64
	d := newDisturbance()
	work, ctx := errgroup.WithContext(t.Context())
	work.SetLimit(32)
	work.Go(func() error { return madeProfiles(ctx, client) })
	middle := make(chan string, 1)
	go func() { middle <- d.of(h) }()
	for n := range loadClaims {
		work.Go(func() error {
			err := d.claim(ctx, client, n)
			switch done.Add(1) {
			case loadClaims / 3:
				close(d.third)
			case loadClaims / 2:
				close(d.half)
			}
			return err
		})
	}
	if err := work.Wait(); err != nil {
		t.Fatal(err)
	}
	if got, want := h.shown(t), <-middle; got != want {
		t.Error("it does not show the renewed certificate")
	}
	t.Logf("%d times a claim was refused while the extension was away, and asked for again", d.refusals.Load())
	claimsAreRight(t, client)
	profilesAreSeenTo(t, client)
	if err := h.end(); err != nil {
		t.Errorf("told to end, it ended with %v", err)
	}
	lease := box.Run(
		t, clustertest.Local, "", "get", "lease", "carrick", "-n", "vsphere-extensions", "-o",
		"jsonpath={.spec.holderIdentity}",
	)
	if lease != "" {
		t.Errorf("it ended and holds the lease: %s", lease)
	}
}

// addedByAdmission measures how much longer the creation of a claim takes with the webhook. It runs on a quiet machine,
// and alternates between a namespace with and a namespace without the webhook.
func addedByAdmission(t *testing.T, client dynamic.Interface) {
	t.Helper()
	mustMake(t, client, namespaceKind, anObject("v1", "Namespace", "", "load-none", nil))
	took := map[string][]time.Duration{}
	for n := range 200 {
		for _, in := range []string{"load-none", "load-0"} {
			c := theClaim(in, 0)
			c.SetName(fmt.Sprintf("measured-%03d", n))
			began := time.Now()
			mustMake(t, client, claimKind, c)
			took[in] = append(took[in], time.Since(began))
		}
	}
	median := func(in string) time.Duration {
		slices.Sort(took[in])
		return took[in][len(took[in])/2].Round(10 * time.Microsecond)
	}
	without, with := median("load-none"), median("load-0")
	t.Logf(
		"making a claim takes %s (median of %d), and %s with the webhook: admission adds %s", without, len(took["load-none"]),
		with, with-without,
	)
	for in := range took {
		if err := client.Resource(claimKind).Namespace(in).DeleteCollection(
			t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{},
		); err != nil {
			t.Fatal(err)
		}
		till(
			t, client.Resource(claimKind).Namespace(in), "", "the claims are gone",
			func(all map[string]*unstructured.Unstructured) bool { return len(all) == 0 },
		)
	}
}

func mustMake(t *testing.T, client dynamic.Interface, kind schema.GroupVersionResource, o *unstructured.Unstructured) {
	t.Helper()
	if _, err := client.Resource(kind).Namespace(o.GetNamespace()).Create(
		t.Context(), o, metav1.CreateOptions{},
	); err != nil {
		t.Fatal(err)
	}
}

// The extension sees a profile that is created after its namespace, even if the API server serves profiles only then.
// Until that time the extension waits, and answers reviews.
func extensionBeforeProfiles(t *testing.T) {
	box, client := ground(t)
	mustMake(t, client, namespaceKind, theSpace("late", "late@example.org"))
	mustMake(t, client, namespaceKind, theSpace("taken", "somebody@example.org"))
	h := hook(t, box, carricktest.Program(t))
	register(t, box, h)
	active(t, client, "late")
	h.hears("cannot watch, retrying")
	defineProfiles(t, box)
	mustMake(t, client, profileKind, theProfile("taken"))
	mustMake(t, client, profileKind, theProfile("late"))
	till(
		t, client.Resource(bindingKind), "app.kubernetes.io/managed-by=carrick-vsphere-extension", "the binding",
		func(all map[string]*unstructured.Unstructured) bool {
			if all["taken/rb-all-sa_ns-taken"] != nil {
				t.Fatal("a namespace of somebody else is bound")
			}
			return all["late/rb-all-sa_ns-late"] != nil
		},
	)
	h.hears("does not belong to the profile's owner")
	if h.cmd.ProcessState != nil {
		t.Errorf("it has ended: %s", h.cmd.ProcessState)
	}
}

// The API server finds the extension by a Service, as in a cluster. EndpointSlices reject loopback addresses, so the
// extension listens on another address of this machine.
func extensionByAService(t *testing.T) {
	box, client := ground(t)
	at := ownAddress(t)
	h := hook(t, box, carricktest.Program(t), at)
	mustMake(t, client, namespaceKind, theSpace("served", "nobody"))
	_, port, err := net.SplitHostPort(h.address)
	if err != nil {
		t.Fatal(err)
	}
	box.Run(t, clustertest.Local, fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: vsphere-extensions, namespace: vsphere-extensions}
spec: {ports: [{name: https, port: 443, targetPort: https}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: vsphere-extensions-1, namespace: vsphere-extensions, labels: {kubernetes.io/service-name: vsphere-extensions}}
addressType: IPv4
ports: [{name: https, port: %s, protocol: TCP}]
endpoints: [{addresses: [%s], conditions: {ready: true}}]
`, port, at), "apply", "-f", "-")
	registerAt(
		t, box, h,
		"{service: {namespace: vsphere-extensions, name: vsphere-extensions, path: /pvc/mutate, port: 443}, caBundle: %s}",
	)
	active(t, client, "served")
}

func ownAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Skip("this machine has no address but loopback")
	return ""
}
