package livetest

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// extensionCommand is the argument with which this test's own program replaces carrick's extension.
const extensionCommand = "vsphere-extension"

// extend is a minimal extension: a webhook that sets the StorageClass of shared claims, and a readiness endpoint. If it
// has a kubeconfig, it also sends a request to the API server with its identity.
func extend(args []string) int {
	flags := flag.NewFlagSet(extensionCommand, flag.ContinueOnError)
	class, listen, health := flags.String("class", "", ""), flags.String("listen", "", ""), flags.String("health", "", "")
	folder, kubeconfig := flags.String("certificate", "", ""), flags.String("kubeconfig", "", "")
	flags.String("from", "", "")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if *kubeconfig != "" {
		fmt.Println(whoAmI(ctx, *kubeconfig))
	}
	fmt.Println("pod", os.Getenv("POD_NAME"), "certificate", *folder)
	ready, err := net.Listen("tcp", *health)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	reviews, err := tls.Listen(
		"tcp", *listen, &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(filepath.Join(*folder, "tls.crt"), filepath.Join(*folder, "tls.key"))
			return &pair, err
		}},
	)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /pvc/mutate", func(w http.ResponseWriter, r *http.Request) { mutate(w, r, *class) })
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(ready) }()
	go func() { _ = server.Serve(reviews) }()
	<-ctx.Done()
	fmt.Println("told to end")
	return 0
}

func whoAmI(ctx context.Context, kubeconfig string) string {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err.Error()
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err.Error()
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(
		ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{},
	)
	if err != nil {
		return err.Error()
	}
	_, refused := client.CoreV1().Secrets("").List(ctx, metav1.ListOptions{})
	return fmt.Sprintf("I am %s, and of secrets: %v", review.Status.UserInfo.Username, refused)
}

func mutate(w http.ResponseWriter, r *http.Request, class string) {
	var review admissionv1.AdmissionReview
	var claim corev1.PersistentVolumeClaim
	if err := errors.Join(
		json.NewDecoder(r.Body).Decode(&review), json.Unmarshal(review.Request.Object.Raw, &claim),
	); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteMany) {
		kind := admissionv1.PatchTypeJSONPatch
		review.Response.PatchType = &kind
		review.Response.Patch = fmt.Appendf(nil, `[{"op":"add","path":"/spec/storageClassName","value":%q}]`, class)
	}
	_ = json.NewEncoder(w).Encode(review)
}
