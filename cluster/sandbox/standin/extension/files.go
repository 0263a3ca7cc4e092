package extension

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientapi "k8s.io/client-go/tools/clientcmd/api"

	"carrick/cluster/sandbox/standin"
	"carrick/cluster/sandbox/standin/podfiles"
)

const (
	accountAt  = "/var/run/secrets/kubernetes.io/serviceaccount"
	tokenFor   = 3607 * time.Second // lifetime that a kubelet requests
	tokenEarly = tokenFor / 5       // remaining lifetime at which the token is renewed
)

// mount writes and refreshes the files in the container's volumes.
func (i *instance) mount(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, c *corev1.Container) error {
	for _, v := range pod.Spec.Volumes {
		for _, m := range c.VolumeMounts {
			if m.Name != v.Name || m.MountPath == accountAt {
				continue
			}
			at := i.path(m.MountPath)
			if err := os.MkdirAll(at, 0o700); err != nil {
				return err
			}
			files, err := podfiles.Volume(ctx, client, pod.Namespace, v)
			if err != nil && i.running() {
				continue // deleted files remain
			}
			if err != nil {
				return fmt.Errorf("MountVolume.SetUp failed for volume %q : %w", v.Name, err)
			}
			if podfiles.Same(at, files) {
				continue
			}
			if err := podfiles.Project(at, files); err != nil {
				return err
			}
		}
	}
	return nil
}

// path returns the path on this machine for a container path.
func (i *instance) path(name string) string { return filepath.Join(i.dir, "root", name) }

func (p *Player) unmounted(ctx context.Context, pod *corev1.Pod, err error) error {
	return p.events.Say(ctx, p.client, standin.Event{
		Of: podRef(pod), Component: "kubelet", Host: pod.Spec.NodeName, Type: corev1.EventTypeWarning, Reason: "FailedMount",
		Message: err.Error(),
	})
}

func podRef(pod *corev1.Pod) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		ResourceVersion: pod.ResourceVersion,
	}
}

func (i *instance) kubeconfig() string { return filepath.Join(i.dir, "kubeconfig") }

// identify writes a ServiceAccount token if the container mounts one, and renews the token before it expires. It also
// writes a kubeconfig that replaces the in-cluster configuration.
func (i *instance) identify(
	ctx context.Context, client kubernetes.Interface, api *rest.Config, pod *corev1.Pod, c *corev1.Container,
) error {
	if !hasAccount(c) || time.Until(i.token) > tokenEarly {
		return nil
	}
	seconds := int64(tokenFor.Seconds())
	made, err := client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(
		ctx, pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{
				ExpirationSeconds: &seconds,
				BoundObjectRef: &authenticationv1.BoundObjectReference{
					APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
				},
			},
		}, metav1.CreateOptions{},
	)
	if err != nil {
		return err
	}
	at := i.path(accountAt)
	files := map[string][]byte{
		"token": []byte(made.Status.Token), "ca.crt": api.CAData, "namespace": []byte(pod.Namespace),
	}
	if err := os.MkdirAll(at, 0o700); err != nil {
		return err
	}
	if err := podfiles.Project(at, files); err != nil {
		return err
	}
	config := clientapi.NewConfig()
	config.Clusters["in"] = &clientapi.Cluster{Server: api.Host, CertificateAuthorityData: api.CAData}
	config.AuthInfos["in"] = &clientapi.AuthInfo{TokenFile: filepath.Join(at, "token")}
	config.Contexts["in"] = &clientapi.Context{Cluster: "in", AuthInfo: "in", Namespace: pod.Namespace}
	config.CurrentContext = "in"
	data, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	if err := podfiles.Write(i.kubeconfig(), data); err != nil {
		return err
	}
	i.token = made.Status.ExpirationTimestamp.Time
	return nil
}

func hasAccount(c *corev1.Container) bool {
	for _, m := range c.VolumeMounts {
		if m.MountPath == accountAt {
			return true
		}
	}
	return false
}

// defaults contains the default listen addresses by flag.
var defaults = map[string]string{"--bind-address": ":8443", "--health-probe-bind-address": ":8081"}

// listening matches a listen address on all interfaces.
var listening = regexp.MustCompile(`^(?:0\.0\.0\.0|\[::\]|\*)?:([0-9]+)$`)

// arguments returns the container's arguments with addresses and paths of this machine.
func (i *instance) arguments(c *corev1.Container) ([]string, error) {
	clear(i.ports)
	args := append([]string{}, c.Args...)
	for name, value := range defaults {
		if !given(args, name) {
			args = append(args, name+"="+value)
		}
	}
	for n, arg := range args {
		name, value, has := strings.Cut(arg, "=")
		if !has {
			name, value = "", arg
		} else {
			name += "="
		}
		now, err := i.here(c, value)
		if err != nil {
			return nil, err
		}
		args[n] = name + now
	}
	if hasAccount(c) && !given(args, "--kubeconfig") {
		args = append(args, "--kubeconfig="+i.kubeconfig())
	}
	return args, nil
}

func given(args []string, name string) bool {
	for _, arg := range args {
		if arg == name || strings.HasPrefix(arg, name+"=") {
			return true
		}
	}
	return false
}

// here translates an address or a path in the container to this machine.
func (i *instance) here(c *corev1.Container, value string) (string, error) {
	if found := listening.FindStringSubmatch(value); found != nil {
		port, err := strconv.Atoi(found[1])
		if err != nil {
			return "", err
		}
		return i.port(port)
	}
	for _, m := range c.VolumeMounts {
		if value == m.MountPath || strings.HasPrefix(value, strings.TrimSuffix(m.MountPath, "/")+"/") {
			return i.path(value), nil
		}
	}
	return value, nil
}

// port returns the address on this machine for pod port n. The first call chooses a free port.
func (i *instance) port(n int) (string, error) {
	if at, ok := i.ports[n]; ok {
		return at, nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	i.ports[n] = listener.Addr().String()
	return i.ports[n], listener.Close()
}
