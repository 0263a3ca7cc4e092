package livetest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// namespace creates a namespace, and waits until its default ServiceAccount exists.
func namespace(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	made, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, happens, func() error {
		_, err := client.CoreV1().ServiceAccounts(made.Name).Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
	return made.Name
}

// as returns a client whose only credential is a token.
func as(t *testing.T, config *rest.Config, token string) kubernetes.Interface {
	t.Helper()
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = token
	return clientOf(t, config)
}

func TestUnprivilegedTokenIsDenied(t *testing.T) {
	client := shared.client(t, "remote")
	space := namespace(t, client)
	request, err := client.CoreV1().ServiceAccounts(space).CreateToken(t.Context(), "default",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	theirs := as(t, shared.config(t, "remote"), request.Status.Token)
	_, err = theirs.CoreV1().Secrets(space).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("list secrets: %v", err)
	}
	who, err := theirs.AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "system:serviceaccount:" + space + ":default"; who.Status.UserInfo.Username != want {
		t.Errorf("the token is of %q", who.Status.UserInfo.Username)
	}
}

func TestTokenSecretIsFilled(t *testing.T) {
	client, config := shared.client(t, "local"), shared.config(t, "local")
	space := namespace(t, client)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
	if _, err := client.CoreV1().Secrets(space).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, happens, func() error {
		var err error
		secret, err = client.CoreV1().Secrets(space).Get(t.Context(), "token", metav1.GetOptions{})
		if err == nil && len(secret.Data["token"]) == 0 {
			err = errors.New("no token yet")
		}
		return err
	})
	if !bytes.Equal(bytes.TrimSpace(secret.Data["ca.crt"]), bytes.TrimSpace(config.CAData)) {
		t.Error("ca.crt is not the authority of the API server's certificate")
	}
	if string(secret.Data["namespace"]) != space {
		t.Errorf("namespace is %q", secret.Data["namespace"])
	}
	theirs := as(t, config, string(secret.Data["token"]))
	if _, err := theirs.Discovery().ServerGroups(); err != nil {
		t.Errorf("the token does not work: %v", err)
	}
}

func TestSigningRequest(t *testing.T) {
	client := shared.client(t, "remote")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader,
		&x509.CertificateRequest{Subject: pkix.Name{CommonName: "somebody", Organization: []string{"visitors"}}}, key)
	if err != nil {
		t.Fatal(err)
	}
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}
	requests := client.CertificatesV1().CertificateSigningRequests()
	if request, err = requests.Create(t.Context(), request, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test",
	}}
	if _, err := requests.UpdateApproval(t.Context(), request.Name, request, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, happens, func() error {
		request, err = requests.Get(t.Context(), request.Name, metav1.GetOptions{})
		if err == nil && len(request.Status.Certificate) == 0 {
			err = fmt.Errorf("no certificate yet: %v", request.Status.Conditions)
		}
		return err
	})
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(shared.config(t, "remote"))
	config.CertData = request.Status.Certificate
	config.KeyData = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
	who, err := clientOf(t, config).AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if user := who.Status.UserInfo; user.Username != "somebody" || !slices.Contains(user.Groups, "visitors") {
		t.Errorf("the certificate is of %+v", user)
	}
}

func TestGarbageCollection(t *testing.T) {
	client := shared.client(t, "local")
	space := namespace(t, client)
	maps := client.CoreV1().ConfigMaps(space)
	owner, err := maps.Create(
		t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{},
	)
	if err != nil {
		t.Fatal(err)
	}
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID},
	}}}
	if _, err := maps.Create(t.Context(), owned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(t.Context(), owner.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, happens, func() error {
		_, err := maps.Get(t.Context(), owned.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the owned object is still there (%v)", err)
	})
}

func TestPodRuns(t *testing.T) {
	client := shared.client(t, "remote")
	space := namespace(t, client)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "registry.invalid/web"}}},
	}
	if _, err := client.CoreV1().Pods(space).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, happens, func() error {
		pod, err := client.CoreV1().Pods(space).Get(t.Context(), "web", metav1.GetOptions{})
		if err == nil && (pod.Spec.NodeName == "" || pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP == "") {
			err = fmt.Errorf("on %q, %s", pod.Spec.NodeName, pod.Status.Phase)
		}
		return err
	})
}

func nodeReady(node corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
