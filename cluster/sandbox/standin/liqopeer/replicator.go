package liqopeer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"carrick/cluster/sandbox/standin"
)

// remotes are clients for other clusters, by cluster id. They are made anew
// when the kubeconfig or the tenant namespace of a Secret changes.
type remotes struct {
	mu        sync.Mutex
	known     map[string]*remote
	restarted string // when the replicator was restarted last
}

// since forgets them when the replicator was restarted.
func (r *remotes) since(restarted string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.restarted != restarted {
		r.known, r.restarted = nil, restarted
	}
}

// remote is a provider as the replicator reaches it: with the kubeconfig of a
// Secret and nothing else.
type remote struct {
	of        [sha256.Size]byte
	namespace string // of the tenant, there
	client    kubernetes.Interface
	dynamic   dynamic.Interface

	synced  map[schema.GroupVersionResource]bool // listed there once
	refused map[types.UID]string                 // originals that may not be created there, and the version of each
}

// replicate plays the crd-replicator for one look.
//
// Source: liqotech/liqo v1.2.0, internal/crdReplicator: crdReplicator-operator.go, foreignclusterstate_controller.go,
// resources/resources.go and reflection/reflector.go (stopForResource, by which a Secret is held).
func (s *site) replicate(ctx context.Context) error {
	if s.replicating.skip() {
		return nil
	}
	deployment, err := standin.Got[appsv1.Deployment](ctx, s.seen, kubeDeployments, home, crdReplicator)
	if err != nil || deployment.Status.AvailableReplicas == 0 {
		return err
	}
	s.remotes.since(deployment.Spec.Template.Annotations[restartedAt])
	id, err := s.clusterID(ctx)
	if err != nil || id == "" {
		return err
	}
	secrets, err1 := standin.Listed[corev1.Secret](ctx, s.seen, kubeSecrets, "", identityType+"="+controlPlaneType)
	namespaces, err2 := standin.Listed[corev1.Namespace](ctx, s.seen, kubeNamespaces, "", tenantNamespace+"="+yes)
	known, err3 := list[foreignSpec, foreignStatus](ctx, s.seen, foreigns)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	var seen sum
	for i := range secrets {
		seen.add(&secrets[i])
	}
	s.replicating.saw(seen.total) // the rest is what the managers of both sides see
	var all []error
	lost := map[string]bool{}
	for _, f := range known {
		if isDead(&f) {
			lost[f.Name] = true
			all = append(all, s.giveUp(ctx, f.Name, namespaces))
		}
	}
	return errors.Join(append(all, s.followAll(ctx, id, secrets, namespaces, lost))...)
}

// isDead reports whether an admin has declared a provider lost, whose API server does not answer either.
//
// Source: liqotech/liqo v1.2.0, pkg/utils/foreigncluster/conditions.go (IsDead).
func isDead(f *foreign) bool {
	return f.Annotations[unreachable] == yes && says(f.Status.Conditions, "APIServerStatus") != "Established"
}

// followAll follows each Secret that is heeded. A provider that does not answer
// holds up none but itself.
func (s *site) followAll(ctx context.Context, id string, secrets []corev1.Secret, namespaces []corev1.Namespace, lost map[string]bool) error {
	var wg sync.WaitGroup
	ended := make([]error, len(secrets))
	for i := range secrets {
		if !heeded(&secrets[i], secrets, namespaces) {
			continue
		}
		wg.Go(func() { ended[i] = s.follow(ctx, id, &secrets[i], lost[secrets[i].Labels[remoteClusterID]]) })
	}
	wg.Wait()
	return errors.Join(ended...)
}

// heeded tells whether the replicator takes a Secret for a way to a provider.
// Nothing says so when it does not. It needs the label and the annotation, and
// must stand in a tenant namespace for that cluster; where several name one
// cluster, the one that was heeded before stays, and none is added.
func heeded(s *corev1.Secret, all []corev1.Secret, namespaces []corev1.Namespace) bool {
	id := s.Labels[remoteClusterID]
	if id == "" || s.Annotations[remoteTenant] == "" || len(s.Data["kubeconfig"]) == 0 {
		return false
	}
	at := slices.IndexFunc(namespaces, func(n corev1.Namespace) bool { return n.Name == s.Namespace })
	if at < 0 || namespaces[at].Labels[remoteClusterID] != id {
		return false
	}
	same := 0
	for i := range all {
		if all[i].Labels[remoteClusterID] == id {
			same++
		}
	}
	return same == 1 || held(s, operatorFinalizer)
}

// follow does for one provider what is to be done.
func (s *site) follow(ctx context.Context, id string, secret *corev1.Secret, lost bool) error {
	going := secret.DeletionTimestamp != nil
	if going && !held(secret, operatorFinalizer) || lost && !going {
		return nil
	}
	var failed error
	if !lost {
		r, err := s.remotes.get(secret)
		if err != nil {
			failed = err
		} else if !going && !held(secret, operatorFinalizer) {
			if err := r.works(ctx); err != nil {
				return err
			}
			if err := s.hold(ctx, kubeSecrets, secret, operatorFinalizer); err != nil {
				return err
			}
		}
		if err == nil {
			failed = s.reflect(ctx, id, secret, r)
		}
	}
	if !going {
		return failed
	}
	left, err := s.left(ctx, secret)
	if err != nil || left > 0 {
		return errors.Join(failed, err)
	}
	return s.release(ctx, kubeSecrets, secret, operatorFinalizer)
}

// get returns the client of a Secret.
func (r *remotes) get(secret *corev1.Secret) (*remote, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, namespace := secret.Labels[remoteClusterID], secret.Annotations[remoteTenant]
	of := sha256.Sum256(secret.Data["kubeconfig"])
	if was := r.known[id]; was != nil && was.of == of && was.namespace == namespace {
		return was, nil
	}
	config, err := connect(secret.Data["kubeconfig"])
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	typed, err1 := kubernetes.NewForConfig(config)
	untyped, err2 := dynamic.NewForConfig(config)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if r.known == nil {
		r.known = map[string]*remote{}
	}
	r.known[id] = &remote{
		of: of, namespace: namespace, client: typed, dynamic: untyped,
		synced: map[schema.GroupVersionResource]bool{}, refused: map[types.UID]string{},
	}
	return r.known[id], nil
}

// works tells whether the other side knows who this is. What that one may do
// there is another matter: without rights the Secret is taken and nothing
// arrives.
func (r *remote) works(ctx context.Context) error {
	_, err := r.client.AuthenticationV1().SelfSubjectReviews().
		Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	return err
}

// left counts the objects of a tenant namespace that are, or may be, on the
// other side too.
func (s *site) left(ctx context.Context, secret *corev1.Secret) (int, error) {
	count := 0
	for _, resource := range replicatedAll {
		found, err := s.dynamic.Resource(resource).Namespace(secret.Namespace).List(ctx, metav1.ListOptions{LabelSelector: replication + "=" + yes})
		if ignoreMissing(err) != nil {
			return 0, err
		}
		if err != nil {
			continue
		}
		for i := range found.Items {
			if held(&found.Items[i], resourceFinalizer) {
				count++
			}
		}
	}
	return count, nil
}

// giveUp lets go what waits for a provider that an admin has declared lost.
func (s *site) giveUp(ctx context.Context, id string, namespaces []corev1.Namespace) error {
	var all []error
	for _, n := range namespaces {
		if n.Labels[remoteClusterID] != id {
			continue
		}
		for _, resource := range replicatedAll {
			found, err := s.dynamic.Resource(resource).Namespace(n.Name).List(ctx, metav1.ListOptions{LabelSelector: destination + "=" + id})
			if err != nil {
				all = append(all, ignoreMissing(err))
				continue
			}
			for i := range found.Items {
				if found.Items[i].GetDeletionTimestamp() != nil {
					all = append(all, s.release(ctx, resource, &found.Items[i], resourceFinalizer))
				}
			}
		}
	}
	return errors.Join(all...)
}
