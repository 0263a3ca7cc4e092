// Package rawget fakes a container that runs the command
//
//	kubectl get --raw PATH --server=URL --certificate-authority=FILE --username=NAME --password=WORD
//
// kwok reports such a pod as completed, although no container ran. This package sends the request with client-go, as
// kubectl does. It serves the response, or upstream's error, as the container's log. Sources (kubernetes/kubernetes
// v1.37.2):
//
//   - the request: staging/src/k8s.io/kubectl/pkg/rawhttp/raw.go and pkg/cmd/get/get.go there. The name and the
//     password are sent as basic authentication, which no API server accepts any more, so the request is anonymous.
//   - the prompt and "error: EOF" without a name: staging/src/k8s.io/client-go/tools/clientcmd/client_config.go
//     (getUserIdentificationPartialConfig), auth_loaders.go there, and ToRawKubeConfigLoader in
//     staging/src/k8s.io/cli-runtime/pkg/genericclioptions/config_flags.go. A pod has no standard input.
//   - a CA file that does not exist, or that contains no certificate: tools/clientcmd/validation.go and
//     transport/transport.go of client-go.
//   - kubectl's error messages: staging/src/k8s.io/kubectl/pkg/cmd/util/helpers.go (checkErr, StandardErrorMessage).
//
// Known differences: the request is sent when the log is first read. It is sent from this machine, because the
// sandbox's nodes have no network of their own, and ignores the machine's proxy variables. It times out after 5 s
// without --request-timeout. kubectl has no timeout. The CA file comes from a ConfigMap that is mounted as a directory.
// If that ConfigMap does not exist, a kubelet does not start the container, and the stand-in logs the error. Responses
// are truncated at 1 MiB. Other flags are not supported.
package rawget

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

const (
	askWithin = 5 * time.Second // timeout without --request-timeout
	atMost    = 1 << 20         // maximum bytes of a response
)

// Asker sends the requests for the pods of one cluster.
type Asker struct {
	client kubernetes.Interface

	mu   sync.Mutex
	said map[types.UID]string // output by pod UID, so that a log does not change
}

// New returns an Asker for a cluster. New itself sends no requests.
func New(config *rest.Config) (*Asker, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Asker{client: client, said: map[types.UID]string{}}, nil
}

// question is the request in a container's command.
type question struct {
	server, path, authority string
	name, password          string // if name is empty, kubectl prompts for a user name
	within                  time.Duration
}

// Log returns the log of a container. It returns false if this package does not run the container.
func (a *Asker) Log(namespace, pod, container string) (string, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*askWithin)
	defer cancel()
	found, err := a.client.CoreV1().Pods(namespace).Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		return "", false
	}
	i := slices.IndexFunc(found.Spec.Containers, func(c corev1.Container) bool { return c.Name == container })
	if i < 0 {
		return "", false
	}
	c := found.Spec.Containers[i]
	q, ok := parse(slices.Concat(c.Command, c.Args))
	if !ok {
		return "", false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if said, ok := a.said[found.UID]; ok {
		return said, true
	}
	said, err := a.ask(ctx, found, c, q)
	if err != nil {
		said += message(err) + "\n"
	}
	a.said[found.UID] = said
	return said, true
}

// parse parses a command line. It returns false if a flag is not supported.
func parse(words []string) (question, bool) {
	q := question{within: askWithin}
	if len(words) < 4 || words[0] != "kubectl" || words[1] != "get" || words[2] != "--raw" {
		return q, false
	}
	q.path = words[3]
	for _, word := range words[4:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "--server":
			q.server = value
		case "--certificate-authority":
			q.authority = value
		case "--username":
			q.name = value
		case "--password":
			q.password = value
		case "--request-timeout":
			within, err := time.ParseDuration(value)
			if err != nil || within <= 0 {
				return q, false
			}
			q.within = within
		default:
			return q, false // unsupported flag
		}
	}
	return q, strings.HasPrefix(q.server, "https://") && strings.HasPrefix(q.path, "/") && q.authority != ""
}

func (a *Asker) ask(ctx context.Context, pod *corev1.Pod, c corev1.Container, q question) (string, error) {
	authority, err := a.mounted(ctx, pod, c, q.authority)
	if err != nil {
		return "", err
	}
	if q.name == "" {
		return "Please enter Username: ", errors.New("EOF")
	}
	client, err := rest.RESTClientFor(&rest.Config{
		Host: q.server, APIPath: "/api", Username: q.name, Password: q.password, Timeout: q.within,
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte(authority)},
		Proxy:           func(*http.Request) (*url.URL, error) { return nil, nil },
		ContentConfig: rest.ContentConfig{
			GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
		},
	})
	if err != nil {
		return "", err
	}
	defer utilnet.CloseIdleConnectionsFor(client.Client.Transport)
	answer, err := client.Get().RequestURI(q.path).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer answer.Close()
	body, err := io.ReadAll(io.LimitReader(answer, atMost))
	return string(body), err
}

// message formats an error as kubectl does (kubernetes/kubernetes v1.37.2
// staging/src/k8s.io/kubectl/pkg/cmd/util/helpers.go). Only some messages begin with "error: ".
func message(err error) string {
	var status apierrors.APIStatus
	var connection *url.Error
	switch {
	case errors.As(err, &status) && status.Status().Reason == metav1.StatusReasonUnauthorized:
		return "error: You must be logged in to the server (" + status.Status().Message + ")"
	case errors.As(err, &status) && status.Status().Reason != "":
		return fmt.Sprintf("Error from server (%s): %v", status.Status().Reason, err)
	case errors.As(err, &status):
		return fmt.Sprintf("Error from server: %v", err)
	case errors.As(err, &connection) && strings.Contains(connection.Err.Error(), "connection refused"):
		at := connection.URL
		if u, err := url.Parse(at); err == nil {
			at = cmp.Or(u.Host, at)
		}
		return fmt.Sprintf("The connection to the server %s was refused - did you specify the right host or port?", at)
	case errors.As(err, &connection):
		return fmt.Sprintf("Unable to connect to the server: %v", connection.Err)
	case errors.Is(err, errUnreadable):
		return fmt.Sprintf("Error in configuration: %v", err)
	}
	return fmt.Sprintf("error: %v", err)
}

// errUnreadable means that kubectl cannot open the CA file.
var errUnreadable = errors.New("no such file or directory")

// mounted returns the content of a file that a ConfigMap provides to a container.
func (a *Asker) mounted(ctx context.Context, pod *corev1.Pod, c corev1.Container, file string) (string, error) {
	for _, mount := range c.VolumeMounts {
		if path.Clean(mount.MountPath) != path.Dir(file) {
			continue
		}
		for _, volume := range pod.Spec.Volumes {
			if volume.Name != mount.Name || volume.ConfigMap == nil {
				continue
			}
			held, err := a.client.CoreV1().ConfigMaps(pod.Namespace).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
			if err != nil {
				return "", fmt.Errorf("stand-in: the container does not start: %v", err) // not from the requested server
			}
			if data, ok := held.Data[path.Base(file)]; ok {
				return data, nil
			}
		}
	}
	return "", fmt.Errorf("unable to read certificate-authority %s for  due to open %s: %w", file, file, errUnreadable)
}
