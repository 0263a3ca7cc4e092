package liqopeer

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"carrick/cluster/sandbox/standin"
)

// remotes contains the providers that objects are replicated to, by cluster ID.
type remotes struct {
	known     map[string]*remote
	seen      map[types.UID]string // by UID of a Secret: the resource version that was last read
	restarted string               // time of the replicator's last restart
}

// since forgets all providers if the replicator was restarted.
func (r *remotes) since(restarted string) {
	if r.restarted != restarted {
		r.known, r.seen, r.restarted = nil, nil, restarted
	}
}

// remote is a provider. The replicator connects to it only with the kubeconfig in a Secret.
type remote struct {
	of        [sha256.Size]byte
	id        string // ID of the provider
	local     string // local tenant namespace, with the Secret
	namespace string // tenant namespace on the provider
	dynamic   dynamic.Interface

	synced  map[schema.GroupVersionResource]bool // listed at least once on the provider
	refused map[types.UID]string                 // by UID of an original: the resource version that the provider refused
}

// replicate runs one pass of the fake crd-replicator.
//
// Source: liqotech/liqo v1.2.0, internal/crdReplicator: crdReplicator-operator.go, foreignclusterstate_controller.go,
// resources/resources.go and reflection/reflector.go (stopForResource, which keeps the Secret's finalizer).
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
	s.replicating.saw(seen.total) // the controller managers on both sides track everything else
	var all []error
	lost := map[string]bool{}
	for _, f := range known {
		if isDead(&f) {
			lost[f.Name] = true
			all = append(all, s.giveUp(ctx, f.Name, namespaces))
		}
	}
	for i := range secrets {
		if valid(&secrets[i]) && secrets[i].DeletionTimestamp == nil {
			all = append(all, s.hold(ctx, kubeSecrets, &secrets[i], operatorFinalizer))
			s.remotes.read(&secrets[i], secrets)
		}
	}
	all = append(all, s.reflectTo(ctx, id, lost))
	for i := range secrets {
		if valid(&secrets[i]) && secrets[i].DeletionTimestamp != nil {
			all = append(all, s.stop(ctx, &secrets[i]))
		}
	}
	return errors.Join(all...)
}

// isDead reports whether an admin has declared a provider unreachable and its API server does not respond.
//
// Source: liqotech/liqo v1.2.0, pkg/utils/foreigncluster/conditions.go (IsDead).
func isDead(f *foreign) bool {
	return f.Annotations[unreachable] == yes && says(f.Status.Conditions, "APIServerStatus") != "Established"
}

// reflectTo replicates to all providers concurrently, so that an unresponsive provider does not delay the others.
func (s *site) reflectTo(ctx context.Context, id string, lost map[string]bool) error {
	var wg sync.WaitGroup
	ended := make(chan error, len(s.remotes.known))
	for _, r := range s.remotes.known {
		if !lost[r.id] {
			wg.Go(func() { ended <- s.reflect(ctx, id, r) })
		}
	}
	wg.Wait()
	close(ended)
	var all []error
	for err := range ended {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// valid reports whether the replicator handles a Secret. It checks only a label and an annotation, regardless of
// namespace and content. Before it does anything else, the replicator adds its finalizer to such a Secret.
//
// Source: liqotech/liqo v1.2.0, internal/crdReplicator/crdReplicator-operator.go (validateSecret, Reconcile).
func valid(s *corev1.Secret) bool {
	_, labelled := s.Labels[remoteClusterID]
	_, noted := s.Annotations[remoteTenant]
	return labelled && noted
}

// read starts the replication for a new or changed Secret. If its kubeconfig is missing or invalid, or if another
// Secret has the same provider, replication stops until a Secret changes or the replicator restarts. Upstream only logs
// this.
func (r *remotes) read(secret *corev1.Secret, all []corev1.Secret) {
	if r.seen[secret.UID] == secret.ResourceVersion {
		return
	}
	if r.seen == nil {
		r.known, r.seen = map[string]*remote{}, map[types.UID]string{}
	}
	r.seen[secret.UID] = secret.ResourceVersion
	id, namespace := secret.Labels[remoteClusterID], secret.Annotations[remoteTenant]
	of := sha256.Sum256(secret.Data["kubeconfig"])
	if was := r.known[id]; was != nil && was.of == of && was.namespace == namespace {
		return
	}
	delete(r.known, id)
	same := 0
	for i := range all {
		if all[i].Labels[remoteClusterID] == id {
			same++
		}
	}
	config, err := connect(secret.Data["kubeconfig"])
	if err != nil || same != 1 {
		return
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return
	}
	r.known[id] = &remote{
		of: of, id: id, local: secret.Namespace, namespace: namespace, dynamic: untyped,
		synced: map[schema.GroupVersionResource]bool{}, refused: map[types.UID]string{},
	}
}

// stop handles a Secret that is being deleted. When no replicated objects are left, it stops the replication and
// removes the finalizer. It does so even if another Secret started the replication.
func (s *site) stop(ctx context.Context, secret *corev1.Secret) error {
	if r := s.remotes.known[secret.Labels[remoteClusterID]]; r != nil && held(secret, operatorFinalizer) {
		left, err := s.left(ctx, r)
		if err != nil || left > 0 {
			return err
		}
		delete(s.remotes.known, r.id)
	}
	return s.release(ctx, kubeSecrets, secret, operatorFinalizer)
}

// left returns the number of replicated objects in the tenant namespace. Their copies might exist on the remote
// cluster.
func (s *site) left(ctx context.Context, r *remote) (int, error) {
	count := 0
	for _, resource := range replicatedAll {
		found, err := s.dynamic.Resource(resource).Namespace(r.local).
			List(ctx, metav1.ListOptions{LabelSelector: replication + "=" + yes + "," + destination})
		if ignoreMissing(err) != nil {
			return 0, err
		}
		if err == nil {
			count += len(found.Items)
		}
	}
	return count, nil
}

// giveUp removes the finalizers that wait for a provider, after an admin has declared it unreachable.
func (s *site) giveUp(ctx context.Context, id string, namespaces []corev1.Namespace) error {
	var all []error
	for _, n := range namespaces {
		if n.Labels[remoteClusterID] != id {
			continue
		}
		for _, resource := range replicatedAll {
			found, err := s.dynamic.Resource(resource).Namespace(n.Name).List(
				ctx, metav1.ListOptions{LabelSelector: destination + "=" + id},
			)
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
