// Package rawget plays a container that runs
//
//	kubectl get --raw PATH --server=URL --certificate-authority=FILE --username=NAME --password=WORD
//
// kwok says of such a pod that it has run, although nothing did. So what it
// would have asked is really asked, with only that authority trusted and
// without a credential, and the answer is its log. It is asked from this
// machine, when the log is first read: the sandbox's nodes have no network of
// their own.
package rawget

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	askWithin = 5 * time.Second // of a question without --request-timeout
	atMost    = 1 << 20         // bytes of an answer
)

// Asker plays for the pods of one cluster.
type Asker struct {
	client kubernetes.Interface

	mu   sync.Mutex
	said map[types.UID]string // by pod: a log does not change
}

// New returns one that has asked nothing yet.
func New(config *rest.Config) (*Asker, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Asker{client: client, said: map[types.UID]string{}}, nil
}

// question is what a container asks.
type question struct {
	server, path, authority string
	named                   bool // kubectl asks for a name and a password where it has no credential at all
	within                  time.Duration
}

// Log is what a container has said, and whether it is one of those that are
// played here.
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
		said += fmt.Sprintf("error: %v\n", err)
	}
	a.said[found.UID] = said
	return said, true
}

// parse returns what a command line asks, and whether it is one that is played.
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
			q.named = value != ""
		case "--password": // of no account: an API server knows none
		case "--request-timeout":
			within, err := time.ParseDuration(value)
			if err != nil || within <= 0 {
				return q, false
			}
			q.within = within
		default:
			return q, false // who knows what it would change
		}
	}
	return q, strings.HasPrefix(q.server, "https://") && strings.HasPrefix(q.path, "/") && q.authority != ""
}

func (a *Asker) ask(ctx context.Context, pod *corev1.Pod, c corev1.Container, q question) (string, error) {
	if !q.named {
		return "Please enter Username: ", errors.New("EOF")
	}
	authority, err := a.mounted(ctx, pod, c, q.authority)
	if err != nil {
		return "", err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(authority)) {
		return "", fmt.Errorf("unable to load root certificates: %s has none", q.authority)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(q.server, "/")+q.path, nil)
	if err != nil {
		return "", err
	}
	client := &http.Client{Transport: transport, Timeout: q.within}
	answer, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("unable to connect to the server: %w", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, atMost))
	if err != nil {
		return "", err
	}
	if answer.StatusCode == http.StatusUnauthorized {
		return "", errors.New("you must be logged in to the server (Unauthorized)")
	}
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the server answered %s", answer.Status)
	}
	return string(body), nil
}

// mounted returns a file that a container sees from a ConfigMap.
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
				return "", err
			}
			if data, ok := held.Data[path.Base(file)]; ok {
				return data, nil
			}
		}
	}
	return "", errors.New("unable to read certificate-authority " + file + ": no such file or directory")
}
