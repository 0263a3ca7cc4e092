package volumes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"carrick/cluster/sandbox/standin"
)

// provisioner is nfs-subdir-external-provisioner in one pod.
type provisioner struct {
	pod          types.UID
	space        string // namespace of the pod
	identity     string // reporting component of its events
	name         string // value of PROVISIONER_NAME
	server, path string
	elects       bool
	old          bool // image for Kubernetes before 1.20
	client       kubernetes.Interface
	events       standin.Events
	said         standin.Said
}

// provision runs one pass of all provisioners. If several provisioners in a namespace have the same name, the oldest
// one is the leader.
func (p *Player) provision(ctx context.Context, now *seen) error {
	pods := slices.Clone(now.pods)
	slices.SortStableFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	there, led := map[types.UID]bool{}, map[string]bool{}
	var faults []error
	for i := range pods {
		pod := &pods[i]
		if _, ok := environment(pod, "PROVISIONER_NAME"); !ok || !standin.Ready(pod) {
			continue
		}
		there[pod.UID] = true
		one := p.provisioners[pod.UID]
		if one == nil {
			var err error
			if one, err = p.start(pod); err != nil {
				faults = append(faults, err)
				continue
			}
			p.provisioners[pod.UID] = one
		}
		if role := one.space + "/" + one.name; one.elects && led[role] {
			one.said.Once("info", "attempting to acquire leader lease %s/%s...", one.space, lockName(one.name))
		} else if one.leads(ctx) {
			led[role] = true
			faults = append(faults, p.work(ctx, one, now))
		}
	}
	for uid := range p.provisioners {
		if !there[uid] {
			delete(p.provisioners, uid)
		}
	}
	return errors.Join(faults...)
}

// environment returns the value of an environment variable in the pod, or false if it is not set.
func environment(pod *corev1.Pod, name string) (string, bool) {
	for _, c := range pod.Spec.Containers {
		for _, e := range c.Env {
			if e.Name == name {
				return e.Value, true
			}
		}
	}
	return "", false
}

// start returns the provisioner in a pod. It has the permissions of the pod's ServiceAccount.
func (p *Player) start(pod *corev1.Pod) (*provisioner, error) {
	config := rest.CopyConfig(p.options.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + pod.Namespace + ":" + pod.Spec.ServiceAccountName,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + pod.Namespace, "system:authenticated"},
	}
	config.WarningHandler = rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	one := &provisioner{pod: pod.UID, space: pod.Namespace, client: client, elects: true}
	one.name, _ = environment(pod, "PROVISIONER_NAME")
	one.server, _ = environment(pod, "NFS_SERVER")
	one.path, _ = environment(pod, "NFS_PATH")
	value, _ := environment(pod, "ENABLE_LEADER_ELECTION")
	if elects, err := strconv.ParseBool(value); err == nil { // "": default; upstream exits on other values
		one.elects = elects
	}
	one.old = strings.Contains(pod.Spec.Containers[0].Image, "nfs-client-provisioner")
	one.identity = one.name + "_" + pod.Name
	one.said.Say(
		"info",
		"nfs-subdir-external-provisioner (stand-in): directories are created in a sandbox directory that represents %s:%s",
		one.server, one.path,
	)
	return one, nil
}

// lockName returns the name of the Endpoints object for leader election (controller/controller.go, Run).
func lockName(name string) string { return strings.ReplaceAll(name, "/", "-") }

// leads reports whether a provisioner is the leader. Its ServiceAccount needs permissions for the lock.
func (one *provisioner) leads(ctx context.Context) bool {
	if !one.elects {
		return true
	}
	locks := one.client.CoreV1().Endpoints(one.space)
	name := lockName(one.name)
	_, err := locks.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		//lint:ignore SA1019 v6.0.0 of its library locks Endpoints
		lock := &corev1.Endpoints{
			ObjectMeta: metav1.ObjectMeta{
				Name: name,
				Annotations: map[string]string{
					"control-plane.alpha.kubernetes.io/leader": fmt.Sprintf(`{"holderIdentity":%q}`, one.identity),
				},
			},
		}
		_, err = locks.Create(ctx, lock, metav1.CreateOptions{})
	}
	if err != nil {
		one.said.Once("error", "error retrieving resource lock %s/%s: %v", one.space, name, err)
		return false
	}
	one.said.Once("info", "successfully acquired lease %s/%s", one.space, name)
	return true
}

// work provisions volumes for claims, and deletes volumes of deleted claims.
func (p *Player) work(ctx context.Context, one *provisioner, now *seen) error {
	if !one.sees(ctx) {
		return nil
	}
	one.said.Once("info", "Started provisioner controller %s!", one.identity)
	var faults []error
	for _, c := range now.waiting(one.name) {
		class := now.classes[*c.Spec.StorageClassName]
		if class == nil || class.Provisioner != one.name {
			continue
		}
		if one.old {
			one.said.Once(
				"error",
				"provision %q class %q: unexpected error getting claim reference: selfLink was empty, can't make reference",
				c.Namespace+"/"+c.Name, class.Name,
			)
			continue
		}
		faults = append(faults, p.folder(ctx, one, c, class))
	}
	for _, v := range now.released(one.name) {
		faults = append(faults, p.unmake(ctx, one, v, now.classes[v.Spec.StorageClassName]))
	}
	return errors.Join(faults...)
}

// sees reports whether a provisioner is allowed to list the resources that it watches.
func (one *provisioner) sees(ctx context.Context) bool {
	few := metav1.ListOptions{ResourceVersion: "0"}
	_, claims := one.client.CoreV1().PersistentVolumeClaims("").List(ctx, few)
	_, volumes := one.client.CoreV1().PersistentVolumes().List(ctx, few)
	_, classes := one.client.StorageV1().StorageClasses().List(ctx, few)
	sees := true
	for kind, err := range map[string]error{
		"v1.PersistentVolumeClaim": claims, "v1.PersistentVolume": volumes, "v1.StorageClass": classes,
	} {
		if err != nil {
			sees = false
			one.said.Once("error", "Failed to watch *%s: failed to list *%s: %v", kind, kind, err)
		}
	}
	return sees
}
