package scenario

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientapi "k8s.io/client-go/tools/clientcmd/api"

	"carrick/cluster/sandbox/world"
)

// Names from Liqo's page on declarative peering. The directory of the fault page contains the page's YAML. This
// package creates the consumer's credentials, because the provider's cluster must sign them first.
const (
	credential    = "cplane-secret"
	consumer      = "liqo-consumer" // name of the user and of the CertificateSigningRequest
	consumerSpace = "liqo-tenant-rome"
	providerSpace = "liqo-tenant-milan"
)

// liqoPage creates the Secret with a kubeconfig for the provider's cluster, unless the Secret exists.
func liqoPage(ctx context.Context, sides Sides) error {
	here, err := kubernetes.NewForConfig(sides[local].Config)
	if err != nil {
		return err
	}
	there, err := kubernetes.NewForConfig(sides[remote].Config)
	if err != nil {
		return err
	}
	if _, err := here.CoreV1().Secrets(consumerSpace).Get(
		ctx, credential, metav1.GetOptions{},
	); !apierrors.IsNotFound(err) {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	certificate, err := signed(ctx, there, key)
	if err != nil {
		return err
	}
	kubeconfig, err := liqoKubeconfig(sides[remote], certificate, key)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{Data: map[string][]byte{"kubeconfig": kubeconfig}}
	secret.Name = credential
	secret.Labels = map[string]string{"liqo.io/identity-type": "ControlPlane", "liqo.io/remote-cluster-id": "rome"}
	secret.Annotations = map[string]string{"liqo.io/remote-tenant-namespace": providerSpace}
	_, err = here.CoreV1().Secrets(consumerSpace).Create(ctx, secret, metav1.CreateOptions{FieldManager: "kubectl-create"})
	return err
}

// signed requests and approves a client certificate for key. It returns the certificate as PEM.
func signed(ctx context.Context, there kubernetes.Interface, key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.CreateCertificateRequest(
		rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: consumer}}, key,
	)
	if err != nil {
		return nil, err
	}
	requests := there.CertificatesV1().CertificateSigningRequests()
	request := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		SignerName: certificatesv1.KubeAPIServerClientSignerName,
		Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
	}}
	request.Name = consumer
	// An earlier attempt that was aborted can leave a request with another key.
	if err := requests.Delete(ctx, consumer, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if request, err = requests.Create(ctx, request, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "KubectlApprove",
		Message: "Approved by the admin, as in the published guide.",
	})
	if _, err := requests.UpdateApproval(ctx, consumer, request, metav1.UpdateOptions{}); err != nil {
		return nil, err
	}
	err = world.Until(ctx, "the consumer's certificate", func() (bool, error) {
		request, err = requests.Get(ctx, consumer, metav1.GetOptions{})
		return err == nil && len(request.Status.Certificate) > 0, err
	})
	if err != nil {
		return nil, err
	}
	return request.Status.Certificate, nil
}

func liqoKubeconfig(side *Side, certificate []byte, key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	const name = "rome"
	return clientcmd.Write(clientapi.Config{
		Clusters: map[string]*clientapi.Cluster{
			name: {Server: side.Config.Host, CertificateAuthorityData: side.Config.CAData},
		},
		AuthInfos: map[string]*clientapi.AuthInfo{consumer: {
			ClientCertificateData: certificate,
			ClientKeyData:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
		}},
		Contexts:       map[string]*clientapi.Context{name: {Cluster: name, AuthInfo: consumer, Namespace: providerSpace}},
		CurrentContext: name,
	})
}
