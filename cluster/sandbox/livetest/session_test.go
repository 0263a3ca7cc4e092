package livetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
)

var sessions = schema.GroupVersionResource{Group: "amalthea.dev", Version: "v1alpha1", Resource: "amaltheasessions"}

func TestSessionIsPlayedWhereTheOperatorRuns(t *testing.T) {
	seed(t, "operator-version") // the only way to an operator without Helm
	client := shared.client(t, "remote")
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "test-session"}, Value: 100}
	if _, err := client.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	elsewhere := strings.Replace(
		session("elsewhere", `"annotations":{}`, "sessions.example.org", "standard"), space, "default", 1,
	)
	if err := createSession(t, elsewhere); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ ingress, url, want string }{
		"with-cert":    {`"tlsSecret":{"name":"cert"}`, "https://sessions.example.org/sessions/with-cert/", "Running"},
		"default-cert": {`"useDefaultClusterTLSCert":true`, "https://sessions.example.org/sessions/default-cert/", "Running"},
		"no-cert":      {`"useDefaultClusterTLSCert":false`, "http://sessions.example.org/sessions/no-cert/", "Running"},
	} {
		made := session(name, c.ingress, "sessions.example.org", "standard")
		if err := createSession(t, made); err != nil {
			t.Fatal(err)
		}
		eventually(t, happens, func() error { return fares(t, name, c.want, c.url) })
	}
	other, err := shared.dynamic(t, "remote").Resource(sessions).Namespace("default").Get(
		t.Context(), "elsewhere", metav1.GetOptions{},
	)
	if err != nil {
		t.Fatal(err)
	}
	if got := other.Object["status"]; !reflect.DeepEqual(got, map[string]any{"state": "NotReady", "idle": false}) {
		t.Errorf("a session that the operator does not watch has the status %v", got)
	}
	claim, err := client.CoreV1().PersistentVolumeClaims(space).Get(t.Context(), "no-cert", metav1.GetOptions{})
	if err != nil || claim.Status.Phase != corev1.ClaimBound {
		t.Errorf("the claim: %v %v", claim.Status.Phase, err)
	}
	if err := shared.dynamic(t, "remote").Resource(sessions).Namespace(space).Delete(
		t.Context(), "no-cert", metav1.DeleteOptions{},
	); err != nil {
		t.Fatal(err)
	}
	eventually(t, happens, func() error { return leftOf(t, client, "no-cert") })
}

func TestSessionThatCannotBePlayedIsRefused(t *testing.T) {
	seed(t, "operator-version")
	client := shared.client(t, "remote")
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "test-session"}, Value: 100}
	if _, err := client.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// Not even stored: an annotation that is no string, no host, no image.
	for name, made := range map[string]string{
		"annotation": session("a", `"annotations":{"n":1}`, "sessions.example.org", "standard"),
		"host":       strings.Replace(session("a", `"annotations":{}`, "x", "standard"), `"host":"x",`, "", 1),
		"image": strings.Replace(
			session("a", `"annotations":{}`, "x", "standard"), `"image":"registry.invalid/session",`, "", 1,
		),
	} {
		if err := createSession(t, made); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Stored, with an Ingress that the API server refuses.
	for name, row := range map[string]struct{ made, url string }{
		"host-with-port": {
			session("host-with-port", `"annotations":{}`, "sessions.example.org:443", "standard"),
			"http://sessions.example.org:443/sessions/host-with-port/",
		},
		"path-that-is-not-one": {
			strings.Replace(
				session("path-that-is-not-one", `"annotations":{}`, "sessions.example.org", "standard"),
				`"pathPrefix":"/`, `"pathPrefix":"`, 1),
			"http://sessions.example.org/sessions/path-that-is-not-one/",
		},
	} {
		if err := createSession(t, row.made); err != nil {
			t.Fatal(err)
		}
		eventually(t, happens, func() error {
			if _, err := client.CoreV1().Secrets(space).Get(t.Context(), name+"---internal", metav1.GetOptions{}); err != nil {
				return err
			}
			return fares(t, name, "NotReady", row.url)
		})
		if _, err := client.NetworkingV1().Ingresses(space).Get(
			t.Context(), name, metav1.GetOptions{},
		); !apierrors.IsNotFound(err) {
			t.Errorf("%s has an Ingress: %v", name, err)
		}
	}
	if err := createSession(
		t, session("no-class", `"annotations":{}`, "sessions.example.org", "no-such-class"),
	); err != nil {
		t.Fatal(err)
	}
	eventually(t, happens, func() error {
		if err := fares(t, "no-class", "NotReady", "http://sessions.example.org/sessions/no-class/"); err != nil {
			return err
		}
		claim, err := client.CoreV1().PersistentVolumeClaims(space).Get(t.Context(), "no-class", metav1.GetOptions{})
		if err == nil && claim.Status.Phase != corev1.ClaimPending {
			err = fmt.Errorf("the claim is %s", claim.Status.Phase)
		}
		return err
	})
}

// session returns an AmaltheaSession as JSON.
func session(name, ingress, host, class string) string {
	return fmt.Sprintf(`{"apiVersion":"amalthea.dev/v1alpha1","kind":"AmaltheaSession",
		"metadata":{"name":%q,"namespace":%q},
		"spec":{"hibernated":false,"location":"remote","priorityClassName":"test-session",
			"session":{"image":"registry.invalid/session","urlPath":"/sessions/%s","storage":{"className":%q,"size":"1G"}},
			"ingress":{"host":%q,"pathPrefix":"/sessions/%s",%s}}}`, name, space, name, class, host, name, ingress)
}

func createSession(t *testing.T, data string) error {
	t.Helper()
	made := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(data), &made.Object); err != nil {
		t.Fatal(err)
	}
	_, err := shared.dynamic(t, "remote").Resource(sessions).Namespace(made.GetNamespace()).Create(
		t.Context(), made, metav1.CreateOptions{},
	)
	return err
}

// fares returns an error unless a session has the state and the URL.
func fares(t *testing.T, name, state, url string) error {
	t.Helper()
	s, err := shared.dynamic(t, "remote").Resource(sessions).Namespace(space).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	got, _, _ := unstructured.NestedString(s.Object, "status", "state")
	at, _, _ := unstructured.NestedString(s.Object, "status", "url")
	if got != state || at != url {
		return fmt.Errorf("%s is %s at %q: %v", name, got, at, s.Object["status"])
	}
	return nil
}

// leftOf returns an error while any object of a session exists.
func leftOf(t *testing.T, client kubernetes.Interface, name string) error {
	t.Helper()
	selector := metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + name}
	pods, err1 := client.CoreV1().Pods(space).List(t.Context(), selector)
	claims, err2 := client.CoreV1().PersistentVolumeClaims(space).List(t.Context(), selector)
	ingresses, err3 := client.NetworkingV1().Ingresses(space).List(t.Context(), selector)
	volumes, err4 := client.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	volumes.Items = slices.DeleteFunc(
		volumes.Items, func(v corev1.PersistentVolume) bool { return v.Spec.ClaimRef.Name != name },
	)
	if n := len(pods.Items) + len(claims.Items) + len(ingresses.Items) + len(volumes.Items); n > 0 {
		return fmt.Errorf("%d objects are left", n)
	}
	return nil
}
