package livetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"carrick/cluster/sandbox/world"
)

// Names of the tests' peering, in which milan is the consumer and rome is the provider.
const (
	atMilan = "liqo-tenant-rome"  // the tenant namespace in milan's cluster
	atRome  = "liqo-tenant-milan" // the tenant namespace in rome's cluster
	binding = "liqo-binding-liqo-remote-controlplane"
)

var peeringResources = map[string]schema.GroupVersionResource{
	"Tenant":              {Group: "authentication.liqo.io", Version: "v1beta1", Resource: "tenants"},
	"ResourceSlice":       {Group: "authentication.liqo.io", Version: "v1beta1", Resource: "resourceslices"},
	"Identity":            {Group: "authentication.liqo.io", Version: "v1beta1", Resource: "identities"},
	"VirtualNode":         {Group: "offloading.liqo.io", Version: "v1beta1", Resource: "virtualnodes"},
	"NamespaceMap":        {Group: "offloading.liqo.io", Version: "v1beta1", Resource: "namespacemaps"},
	"NamespaceOffloading": {Group: "offloading.liqo.io", Version: "v1beta1", Resource: "namespaceoffloadings"},
	"Quota":               {Group: "offloading.liqo.io", Version: "v1beta1", Resource: "quotas"},
	"ForeignCluster":      {Group: "core.liqo.io", Version: "v1beta1", Resource: "foreignclusters"},
	"Secret":              {Version: "v1", Resource: "secrets"},
	"Namespace":           {Version: "v1", Resource: "namespaces"},
	"RoleBinding":         {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
}

// liqo is the scenario liqo in the shared sandbox, which is reset when the test ends.
type liqo struct {
	*testing.T
	clients map[string]kubernetes.Interface
	dynamic map[string]dynamic.Interface
}

// seedPeering seeds the scenario liqo, with a fault unless fault is "".
func seedPeering(t *testing.T, fault string) *liqo {
	t.Helper()
	t.Cleanup(func() { shared.must(t, "reset") })
	shared.must(t, strings.TrimSpace("seed liqo "+fault))
	l := &liqo{T: t, clients: map[string]kubernetes.Interface{}, dynamic: map[string]dynamic.Interface{}}
	for _, side := range []string{"local", "remote"} {
		l.clients[side], l.dynamic[side] = shared.client(t, side), shared.dynamic(t, side)
	}
	return l
}

// try applies YAML and returns the API server's error.
func (l *liqo) try(side, yaml string, dry ...string) error {
	l.Helper()
	objects, err := world.Parse([]byte(yaml))
	if err != nil {
		l.Fatal(err)
	}
	for _, o := range objects {
		_, err := l.in(
			side, o.GetKind(), o.GetNamespace(),
		).Apply(l.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "test", Force: true, DryRun: dry})
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

func (l *liqo) apply(side, yaml string) {
	l.Helper()
	if err := l.try(side, yaml); err != nil {
		l.Fatal(err)
	}
}

func (l *liqo) in(side, kind, namespace string) dynamic.ResourceInterface {
	l.Helper()
	resource, known := peeringResources[kind]
	if !known {
		l.Fatalf("nobody knows the kind %s", kind)
	}
	return l.dynamic[side].Resource(resource).Namespace(namespace)
}

// get returns an object, or nil if the object does not exist.
func (l *liqo) get(side, kind, namespace, name string) *unstructured.Unstructured {
	l.Helper()
	list, err := l.in(side, kind, namespace).List(l.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		l.Fatal(err)
	}
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

func (l *liqo) delete(side, kind, namespace, name string) {
	l.Helper()
	if err := l.in(side, kind, namespace).Delete(l.Context(), name, metav1.DeleteOptions{}); err != nil {
		l.Fatal(err)
	}
}

// gone waits until an object no longer exists.
func (l *liqo) gone(side, kind, namespace, name string) {
	l.Helper()
	eventually(l.T, happens, func() error {
		if o := l.get(side, kind, namespace, name); o != nil {
			return fmt.Errorf("%s %s is still there, held by %v", kind, name, o.GetFinalizers())
		}
		return nil
	})
}

// field waits until a field of an object has the value want. path is like one of kubectl's JSON paths, without filters.
func (l *liqo) field(side, kind, namespace, name, path, want string) {
	l.Helper()
	eventually(l.T, happens, func() error {
		o := l.get(side, kind, namespace, name)
		if o == nil {
			return fmt.Errorf("there is no %s %s", kind, name)
		}
		if got := fmt.Sprint(valueAt(o, path)); got != want {
			return fmt.Errorf("%s of %s is %q, not %q", path, name, got, want)
		}
		return nil
	})
}

// valueAt returns a field, or "" if the field does not exist. The path conditions/TYPE returns the status of a
// condition.
func valueAt(o *unstructured.Unstructured, path string) any {
	if kind, is := strings.CutPrefix(path, "conditions/"); is {
		all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, c := range all {
			if fields, ok := c.(map[string]any); ok && fields["type"] == kind {
				return fields["status"]
			}
		}
		return ""
	}
	value, found, _ := unstructured.NestedFieldNoCopy(o.Object, strings.Split(path, ".")...)
	if !found {
		return ""
	}
	return value
}

// tenants creates the two tenant namespaces, and the Tenant and its RoleBinding on the provider.
func (l *liqo) tenants() {
	l.Helper()
	l.apply("local", namespaceFor(atMilan, "rome"))
	l.apply(
		"remote", namespaceFor(atRome, "milan")+"---"+tenantYAML("milan", atRome, "milan")+"---"+bindingYAML("milan-user"),
	)
}

func namespaceFor(name, id string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %s, labels: {liqo.io/remote-cluster-id: %s, liqo.io/tenant-namespace: "true"}}
`, name, id)
}

func tenantYAML(name, namespace, id string) string {
	return fmt.Sprintf(`
apiVersion: authentication.liqo.io/v1beta1
kind: Tenant
metadata: {name: %s, namespace: %s, labels: {liqo.io/remote-cluster-id: %[3]s}}
spec: {clusterID: %[3]s, authzPolicy: TolerateNoHandshake, tenantCondition: Active}
`, name, namespace, id)
}

func bindingYAML(user string) string {
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %s, namespace: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: liqo-remote-controlplane}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}]
`, binding, atRome, user)
}

// credentials returns the kubeconfig of a user of the remote cluster. The remote cluster has signed the user's
// certificate.
func (l *liqo) credentials(user string) *api.Config {
	l.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		l.Fatal(err)
	}
	der, err1 := x509.CreateCertificateRequest(
		rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{"liqo.io"}}}, key,
	)
	private, err2 := x509.MarshalECPrivateKey(key)
	if err := errors.Join(err1, err2); err != nil {
		l.Fatal(err)
	}
	requests := l.clients["remote"].CertificatesV1().CertificateSigningRequests()
	asked, err := requests.Create(l.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: user + "-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		l.Fatal(err)
	}
	asked.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"},
	}
	if _, err := requests.UpdateApproval(l.Context(), asked.Name, asked, metav1.UpdateOptions{}); err != nil {
		l.Fatal(err)
	}
	eventually(l.T, happens, func() error {
		if asked, err = requests.Get(l.Context(), asked.Name, metav1.GetOptions{}); err != nil ||
			len(asked.Status.Certificate) == 0 {
			return fmt.Errorf("there is no certificate: %w", err)
		}
		return nil
	})
	there := shared.config(l.T, "remote")
	config := api.NewConfig()
	config.Clusters["rome"] = &api.Cluster{Server: there.Host, CertificateAuthorityData: there.CAData}
	config.AuthInfos[user] = &api.AuthInfo{
		ClientCertificateData: asked.Status.Certificate,
		ClientKeyData:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
	}
	config.Contexts["rome"] = &api.Context{Cluster: "rome", AuthInfo: user}
	config.CurrentContext = "rome"
	return config
}

// secret creates a Secret with a kubeconfig for rome. change can modify the Secret before it is created.
func (l *liqo) secret(name string, config *api.Config, change func(*corev1.Secret)) {
	l.Helper()
	data, err := clientcmd.Write(*config)
	if err != nil {
		l.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: atMilan,
			Labels:      map[string]string{"liqo.io/identity-type": "ControlPlane", "liqo.io/remote-cluster-id": "rome"},
			Annotations: map[string]string{"liqo.io/remote-tenant-namespace": atRome},
		},
		Data: map[string][]byte{"kubeconfig": data},
	}
	if change != nil {
		change(secret)
	}
	if _, err := l.clients["local"].CoreV1().Secrets(secret.Namespace).Create(
		l.Context(), secret, metav1.CreateOptions{},
	); err != nil {
		l.Fatal(err)
	}
}

// accepted waits until the replicator has added its finalizer to a Secret. The replicator reads the content of the
// Secret later.
func (l *liqo) accepted(namespace, name string) {
	l.Helper()
	l.field("local", "Secret", namespace, name, "metadata.finalizers", "[crdreplicator.liqo.io/operator]")
}

// peer creates everything that authentication needs, and waits until the replicator has accepted the Secret.
func (l *liqo) peer() {
	l.Helper()
	l.tenants()
	l.secret("cplane-secret", l.credentials("milan-user"), nil)
	l.accepted(atMilan, "cplane-secret")
}

// threeLabels contains the labels that a slice needs.
const threeLabels = `liqo.io/replication: "true", liqo.io/remoteID: rome, liqo.io/remote-cluster-id: rome`

func sliceYAML(name, labels, spec string) string {
	return fmt.Sprintf(`
apiVersion: authentication.liqo.io/v1beta1
kind: ResourceSlice
metadata: {name: %s, namespace: %s, labels: {%s}, annotations: {liqo.io/create-virtual-node: "true"}}
spec: {providerClusterID: rome, %s}
`, name, atMilan, labels, spec)
}

// granted waits until both conditions of a slice on the consumer are Accepted.
func (l *liqo) granted(name string) {
	l.Helper()
	l.field("local", "ResourceSlice", atMilan, name, "conditions/Authentication", "Accepted")
	l.field("local", "ResourceSlice", atMilan, name, "conditions/Resources", "Accepted")
}

func offloadingYAML(namespace, name, spec string) string {
	return fmt.Sprintf(`
apiVersion: offloading.liqo.io/v1beta1
kind: NamespaceOffloading
metadata: {name: %s, namespace: %s}
spec: {%s}
`, name, namespace, spec)
}

// unbind deletes the consumer's RoleBinding on the provider.
func (l *liqo) unbind() {
	l.Helper()
	if err := l.clients["remote"].RbacV1().RoleBindings(atRome).Delete(
		l.Context(), binding, metav1.DeleteOptions{},
	); err != nil {
		l.Fatal(err)
	}
}

// restOf converts a kubeconfig to a client configuration.
func (l *liqo) restOf(config *api.Config) *rest.Config {
	l.Helper()
	found, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		l.Fatal(err)
	}
	return found
}
