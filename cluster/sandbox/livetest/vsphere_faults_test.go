package livetest

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestVSphereHasEveryFault(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range shared.ask(t, "faults vsphere").Faults {
		seen[f.Name] = true
		t.Run(f.Name, func(t *testing.T) {
			look := guestShown[f.Name]
			if look == nil || f.Title == "" {
				t.Fatal("nothing looks at what it does, or says it")
			}
			g := seedGuest(t, f.Name)
			look(t, g)
			shared.must(t, "seed vsphere "+f.Name) // a second time changes nothing
			look(t, g)
		})
	}
	for name := range guestShown {
		if !seen[name] {
			t.Errorf("there is no fault %s", name)
		}
	}
}

const (
	provisioner = "app=nfs-subdir-external-provisioner"
	pipeline    = "kale-marshal-pvc"
)

// guestShown maps each fault to a check that the fault has its effect.
var guestShown = map[string]func(*testing.T, *guest){
	"by-hand": func(_ *testing.T, g *guest) {
		g.get("nfs-client")
		g.bound("bob", pipeline)
		g.levels("baseline")
	},
	"webhook": func(_ *testing.T, g *guest) { g.get("nfs-client") },
	"claims-pending": func(_ *testing.T, g *guest) {
		g.says("alice", pipeline, "ProvisioningFailed", "File volume provisioning is not supported.")
		g.waits("alice", pipeline)
	},
	"native-rwx": func(t *testing.T, g *guest) {
		g.ensure(g.claim("alice", "shared", "vsphere-policy", corev1.ReadWriteMany))
		if v := g.bound("alice", "shared"); v.Spec.CSI == nil || v.Spec.CSI.FSType != "ext4" {
			t.Errorf("%+v", v.Spec)
		}
	},
	"second-default": func(t *testing.T, g *guest) { g.defaults(2) },
	"no-default":     func(t *testing.T, g *guest) { g.defaults(0) },
	"wrong-cluster": func(t *testing.T, g *guest) {
		for _, group := range []string{"vmoperator.vmware.com/v1alpha3", "run.tanzu.vmware.com/v1alpha3"} {
			if _, err := g.client.Discovery().ServerResourcesForGroupVersion(group); err != nil {
				t.Errorf("%s: %v", group, err)
			}
		}
	},
	"no-istio-cni": func(t *testing.T, g *guest) {
		if _, err := g.client.AppsV1().DaemonSets("kube-system").Get(
			t.Context(), "istio-cni-node", metav1.GetOptions{},
		); !apierrors.IsNotFound(err) {
			t.Errorf("%v", err)
		}
	},
	"profile-failed": func(t *testing.T, g *guest) {
		pods, err := g.client.CoreV1().Pods("kubeflow").List(
			t.Context(), metav1.ListOptions{LabelSelector: "kustomize.component=profiles"},
		)
		if err != nil || len(pods.Items) == 0 {
			t.Fatalf("no profile controller: %v", err)
		}
		eventually(t, happens, func() error {
			said, err := g.client.CoreV1().Pods("kubeflow").GetLogs(
				pods.Items[0].Name, &corev1.PodLogOptions{Container: pods.Items[0].Spec.Containers[0].Name},
			).DoRaw(t.Context())
			if err == nil && !strings.Contains(string(said), "not owned by profile creator carol@example.com") {
				err = fmt.Errorf("it says %s", said)
			}
			return err
		})
		if _, err := g.client.CoreV1().ServiceAccounts("carol").Get(
			t.Context(), "default-editor", metav1.GetOptions{},
		); !apierrors.IsNotFound(err) {
			t.Errorf("its user has an account: %v", err)
		}
	},
	"privileged-pod": func(t *testing.T, g *guest) {
		eventually(t, happens, func() error {
			said := &warnings{}
			config := shared.config(t, "local")
			config.WarningHandler = said
			patch := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"baseline"}}}`)
			_, err := clientOf(t, config).CoreV1().Namespaces().Patch(
				t.Context(), "bob", types.MergePatchType, patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}},
			)
			if err == nil && !strings.Contains(said.all, "hostPath") {
				err = fmt.Errorf("nothing is warned of: %s", said.all)
			}
			return err
		})
	},
	"labels-missing": func(_ *testing.T, g *guest) { g.levels("") },
	"restricted-namespace": func(_ *testing.T, g *guest) {
		g.says("bob", "papers", "FailedCreate", "violates PodSecurity")
	},
	"provisioner-down": func(_ *testing.T, g *guest) {
		g.says("bob", pipeline, "ExternalProvisioning", "Waiting for a volume")
		g.waits("bob", pipeline)
	},
	"provisioner-name": func(_ *testing.T, g *guest) {
		g.logs("nfs-provisioner", provisioner, "Started provisioner controller fuseim.pri/ifs_")
		g.says("bob", pipeline, "ExternalProvisioning", "Waiting for a volume")
		g.waits("bob", pipeline)
	},
	"provisioner-rights": func(_ *testing.T, g *guest) {
		g.logs(
			"nfs-provisioner", provisioner,
			`persistentvolumeclaims is forbidden: User \"system:serviceaccount:nfs-provisioner:nfs-subdir-external-provisioner\" cannot list`,
		)
		g.waits("bob", pipeline)
	},
	"old-provisioner": func(_ *testing.T, g *guest) {
		g.logs("nfs-provisioner", provisioner, "selfLink was empty, can't make reference")
		g.waits("bob", pipeline)
	},
	"class-deletes": func(t *testing.T, g *guest) {
		v := g.bound("bob", pipeline)
		class, err := g.client.StorageV1().StorageClasses().Get(t.Context(), v.Spec.StorageClassName, metav1.GetOptions{})
		if err != nil || class.Parameters["archiveOnDelete"] != "false" ||
			v.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
			t.Errorf("%v, %v", class, err)
		}
	},
	"export-closed": func(t *testing.T, g *guest) {
		if conn, err := net.DialTimeout("tcp", net.JoinHostPort(g.told["nfs.server"], "2049"), time.Second); err == nil {
			conn.Close()
			t.Error("something listens")
		}
		g.logs("nfs-provisioner", provisioner, "stand-in: the export does not respond")
		g.waits("alice", pipeline)
	},
	"access-denied": func(_ *testing.T, g *guest) {
		g.says(
			"nfs-provisioner", "nfs-subdir-external-provisioner-", "FailedMount",
			"mount.nfs: access denied by server while mounting "+g.told["nfs.server"]+":/srv/kubeflow",
		)
		g.waits("alice", pipeline)
	},
	"write-denied": func(_ *testing.T, g *guest) {
		g.says(
			"alice", pipeline, "ProvisioningFailed",
			"unable to create directory to provision new pv: mkdir /persistentvolumes/alice-kale-marshal-pvc-pvc-",
		)
		g.logs("nfs-provisioner", provisioner, "permission denied")
		g.waits("alice", pipeline)
	},
	"no-mount-helper": func(_ *testing.T, g *guest) {
		g.says(
			"nfs-provisioner", "nfs-subdir-external-provisioner-", "FailedMount",
			"bad option; for several filesystems (e.g. nfs, cifs) you might need a /sbin/mount.<type> helper program.",
		)
		g.waits("alice", pipeline)
	},
	"two-mutators":   func(_ *testing.T, g *guest) { g.get("old-nfs") },
	"policy-unbound": func(_ *testing.T, g *guest) { g.get("vsphere-policy") },
	"policy-takes-all": func(t *testing.T, g *guest) {
		g.get("nfs-client")
		if got, err := g.classOf(g.claim("bob", "try", "vsphere-policy", corev1.ReadWriteOnce)); err != nil ||
			got != "nfs-client" {
			t.Errorf("%s, %v", got, err)
		}
	},
	"webhook-down": func(t *testing.T, g *guest) {
		g.get("vsphere-policy")
		if left := programs(t, shared.Dir); len(left) > 0 {
			t.Errorf("it runs: %v", left)
		}
	},
	"cert-expired": func(t *testing.T, g *guest) {
		g.get("vsphere-policy")
		if leaf := g.certificate(); time.Now().Before(leaf.NotAfter) {
			t.Errorf("it ends at %s", leaf.NotAfter)
		}
	},
	"webhook-network": func(t *testing.T, g *guest) {
		if _, err := g.client.NetworkingV1().NetworkPolicies(extensionSpace).Get(
			t.Context(), "default-deny", metav1.GetOptions{},
		); err != nil {
			t.Error(err)
		}
	},
	"webhook-sidecar": func(t *testing.T, g *guest) {
		if ns, err := g.client.CoreV1().Namespaces().Get(t.Context(), extensionSpace, metav1.GetOptions{}); err != nil ||
			ns.Labels["istio-injection"] != "enabled" {
			t.Errorf("%v, %v", ns, err)
		}
	},
	"webhook-wide": func(t *testing.T, g *guest) {
		if got, err := g.classOf(g.claim("kubeflow", "try", "vsphere-policy", corev1.ReadWriteMany)); err != nil ||
			got != "nfs-client" {
			t.Errorf("%s, %v", got, err)
		}
	},
	"webhook-other-ca": func(t *testing.T, g *guest) {
		g.get("vsphere-policy")
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(g.bundle())
		if _, err := g.certificate().Verify(x509.VerifyOptions{Roots: roots}); err == nil {
			t.Error("its caBundle proves its certificate")
		}
	},
	"config-stale": func(t *testing.T, g *guest) {
		g.get("vsphere-policy")
		text, err := g.client.CoreV1().ConfigMaps(extensionSpace).Get(
			t.Context(), "vsphere-extensions-cm", metav1.GetOptions{},
		)
		if err != nil {
			t.Fatal(err)
		}
		pods, err := g.client.CoreV1().Pods(extensionSpace).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(pods.Items) != 1 || !pods.Items[0].Status.StartTime.Before(&text.CreationTimestamp) {
			t.Errorf("%v, %v", pods, err)
		}
	},
	"page": func(t *testing.T, g *guest) {
		eventually(t, happens, func() error {
			pods, err := g.client.CoreV1().Pods(extensionSpace).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(pods.Items) != 1 || len(pods.Items[0].Status.InitContainerStatuses) != 1 {
				return fmt.Errorf("%v, %w", pods, err)
			}
			if w := pods.Items[0].Status.InitContainerStatuses[0].State.Waiting; w == nil || w.Reason != "ImagePullBackOff" {
				return fmt.Errorf("%+v", w)
			}
			return nil
		})
		authorsCA(t, g)
		g.get("vsphere-policy")
	},
	"page-webhook": authorsCA,
	"page-empty-cert": func(t *testing.T, g *guest) {
		if held, err := g.client.CoreV1().Secrets(extensionSpace).Get(
			t.Context(), "vsphere-extensions-tls", metav1.GetOptions{},
		); err != nil || len(held.Data["tls.crt"]) != 0 {
			t.Errorf("%v", err)
		}
	},
	"page-sed": func(t *testing.T, g *guest) {
		if text, err := g.client.CoreV1().ConfigMaps(extensionSpace).Get(
			t.Context(), "vsphere-extensions-cm", metav1.GetOptions{},
		); err != nil || !strings.Contains(text.Data["application.properties"], "old-nfs") {
			t.Errorf("%v, %v", text, err)
		}
	},
	"page-pvc": func(_ *testing.T, g *guest) { g.waits("kubeflow", "test-pvc") },
	"page-psp-leftovers": func(t *testing.T, g *guest) {
		if binding, err := g.client.RbacV1().RoleBindings("bob").Get(
			t.Context(), "rb-all-sa_ns-bob", metav1.GetOptions{},
		); err != nil || binding.RoleRef.Name != "psp:vmware-system-privileged" {
			t.Errorf("%v, %v", binding, err)
		}
	},
}

// ensure creates a claim unless it already exists.
func (g *guest) ensure(c *corev1.PersistentVolumeClaim) {
	g.t.Helper()
	if _, err := g.client.CoreV1().PersistentVolumeClaims(c.Namespace).Create(
		g.t.Context(), c, metav1.CreateOptions{},
	); err != nil && !apierrors.IsAlreadyExists(err) {
		g.t.Fatal(err)
	}
}

// defaults waits until exactly want StorageClasses are marked as the default.
func (g *guest) defaults(want int) {
	g.t.Helper()
	eventually(g.t, happens, func() error {
		classes, err := g.client.StorageV1().StorageClasses().List(g.t.Context(), metav1.ListOptions{})
		n := 0
		if err == nil {
			for _, c := range classes.Items {
				if c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
					n++
				}
			}
		}
		if n != want {
			err = fmt.Errorf("%d classes are the default one, %w", n, err)
		}
		return err
	})
}

// levels waits until the profiles' namespaces have the Pod Security level want.
func (g *guest) levels(want string) {
	g.t.Helper()
	eventually(g.t, happens, func() error {
		for _, name := range []string{"alice", "bob"} {
			ns, err := g.client.CoreV1().Namespaces().Get(g.t.Context(), name, metav1.GetOptions{})
			if err != nil || ns.Labels["pod-security.kubernetes.io/enforce"] != want {
				return fmt.Errorf("%s has %v, %w", name, ns.Labels, err)
			}
		}
		return nil
	})
}

// bundle returns the CA bundle with which the API server verifies the webhook.
func (g *guest) bundle() []byte {
	g.t.Helper()
	hook, err := g.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(
		g.t.Context(), "mutating.vsphere-extensions.keeyzar.de", metav1.GetOptions{},
	)
	if err != nil {
		g.t.Fatal(err)
	}
	return hook.Webhooks[0].ClientConfig.CABundle
}

func (g *guest) certificate() *x509.Certificate {
	g.t.Helper()
	held, err := g.client.CoreV1().Secrets(extensionSpace).Get(
		g.t.Context(), "vsphere-extensions-tls", metav1.GetOptions{},
	)
	if err != nil {
		g.t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(held.Data[corev1.TLSCertKey], held.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		g.t.Fatal(err)
	}
	return pair.Leaf
}

// authorsCA verifies that the CA bundle is the CA that the page's repository contains.
func authorsCA(t *testing.T, g *guest) {
	t.Helper()
	block, _ := pem.Decode(g.bundle())
	if block == nil {
		t.Fatal("no caBundle")
	}
	if sum := sha256.Sum256(block.Bytes); hex.EncodeToString(sum[:2]) != "f072" {
		t.Errorf("its sum is %x", sum)
	}
}

// warnings collects the warnings that an API server returns.
type warnings struct{ all string }

func (w *warnings) HandleWarningHeader(_ int, _, text string) { w.all += text + "\n" }
