// Renku's requests to a cluster for a pool's quota (crc/db.py QuotaRepository, crc/models.py Quota, k8s/clients.py
// K8sClusterClient; kr8s: kr8s/_api.py, kr8s/_objects.py). Every read is a LIST with a field selector. A forbidden LIST
// counts as "does not exist". Renku reads created and patched objects back with a GET. If the GET is forbidden, the
// request fails.
//
// Calls have no timeout, because kr8s sets none. They are cancelled with the client's request.

package renkuapi

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	gigabyte     = 1_000_000_000
	gpuResource  = "requests.nvidia.com/gpu"
	classValue   = 100
	quotaMessage = "stand-in: created by the sandbox's Renku for a resource pool"
)

// connection is a cluster that Renku has loaded.
type connection struct {
	config    *rest.Config
	namespace string
	broken    bool // a CA or certificate file does not exist, so every use fails
}

// client returns a new Kubernetes client. An invalid CA or certificate therefore causes an error only at the first use,
// not when the kubeconfig is loaded.
func (c *connection) client() (kubernetes.Interface, error) {
	if c.broken {
		return nil, unexpected()
	}
	config := rest.CopyConfig(c.config)
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	config.QPS = -1
	config.UserAgent = "renku-stand-in"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, unexpected()
	}
	return client, nil
}

// remoteProblem returns Renku's error for a failed request to a cluster. It includes the cause only if the connection
// failed.
func remoteProblem(err error) error {
	failed := &url.Error{}
	if !errors.As(err, &failed) {
		return unexpected()
	}
	return refusal(500, "Error on remote connection %s %s: %s", strings.ToUpper(failed.Op), failed.URL, failed.Err)
}

// refused reports whether err is an error response from an API server.
func refused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

func named(id string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", id).String()}
}

// createQuota creates the ResourceQuota, which must not already exist, and its PriorityClass, which can already exist.
func (c *connection) createQuota(ctx context.Context, q *quota) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	if err := ensureClass(ctx, client, q.ID); err != nil {
		return err
	}
	_, err = client.CoreV1().ResourceQuotas(c.namespace).Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{
			Name: q.ID, Labels: map[string]string{"app": "renku"},
			Annotations: map[string]string{"carrick/stand-in": quotaMessage},
		},
		Spec: corev1.ResourceQuotaSpec{
			Hard: q.hard(),
			ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{
				ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{q.ID},
			}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return remoteProblem(err)
	}
	q.CPU = math.Ceil(q.CPU) // the response has the rounded value from the ResourceQuota
	return nil
}

// ensureClass creates the PriorityClass if a LIST does not contain it or is forbidden.
func ensureClass(ctx context.Context, client kubernetes.Interface, id string) error {
	classes := client.SchedulingV1().PriorityClasses()
	list, err := classes.List(ctx, named(id))
	switch {
	case err == nil && len(list.Items) > 0:
		return nil
	case err != nil && !refused(err):
		return remoteProblem(err)
	}
	never := corev1.PreemptNever
	_, err = classes.Create(ctx, &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{
			Name: id, Labels: map[string]string{"app": "renku"},
			Annotations: map[string]string{"carrick/stand-in": quotaMessage},
		},
		Value: classValue, PreemptionPolicy: &never, GlobalDefault: false, Description: quotaMessage,
	}, metav1.CreateOptions{})
	if err != nil {
		return remoteProblem(err)
	}
	if _, err = classes.Get(ctx, id, metav1.GetOptions{}); err != nil { // kr8s reads the object back
		return remoteProblem(err)
	}
	return nil
}

// hard returns a quota's limits in Kubernetes units: whole CPUs and bytes.
func (q *quota) hard() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceRequestsCPU:    *resource.NewQuantity(int64(math.Ceil(q.CPU)), resource.DecimalSI),
		corev1.ResourceRequestsMemory: *resource.NewQuantity(int64(q.Memory)*gigabyte, resource.DecimalSI),
		gpuResource:                   *resource.NewQuantity(int64(q.GPU), resource.DecimalSI),
	}
}

// readQuota reads a quota from the cluster. It returns nil if the quota does not exist or the cluster refuses the
// request.
func (c *connection) readQuota(ctx context.Context, id string) (*quota, error) {
	client, err := c.client()
	if err != nil {
		return nil, err
	}
	list, err := client.CoreV1().ResourceQuotas(c.namespace).List(ctx, named(id))
	switch {
	case err != nil && refused(err):
		return nil, nil
	case err != nil:
		return nil, remoteProblem(err)
	case len(list.Items) == 0:
		return nil, nil
	}
	hard := list.Items[0].Spec.Hard
	cpu, memory, gpu := hard[corev1.ResourceRequestsCPU], hard[corev1.ResourceRequestsMemory], hard[gpuResource]
	return &quota{
		ID: id, CPU: cpu.AsApproximateFloat64(), Memory: int(memory.Value() / gigabyte), GPU: int(gpu.Value()),
	}, nil
}

// updateQuota updates the ResourceQuota if a LIST contains it, and reads it back.
func (c *connection) updateQuota(ctx context.Context, q *quota) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	list, err := client.CoreV1().ResourceQuotas(c.namespace).List(ctx, named(q.ID))
	switch {
	case err != nil && !refused(err):
		return remoteProblem(err)
	case err != nil || len(list.Items) == 0:
		return missing("The k8s resource %s/%s cannot be found.", c.namespace, q.ID)
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"hard": q.hard()}})
	if err != nil {
		return err
	}
	quotas := client.CoreV1().ResourceQuotas(c.namespace)
	if _, err := quotas.Patch(ctx, q.ID, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return remoteProblem(err)
	}
	if _, err := quotas.Get(ctx, q.ID, metav1.GetOptions{}); err != nil {
		return remoteProblem(err)
	}
	q.CPU = math.Ceil(q.CPU)
	return nil
}

// deleteQuota deletes the PriorityClass, even if another user created it, and then the ResourceQuota. It skips an
// object that a LIST does not contain, which is also the case if the LIST is forbidden. If a DELETE is refused, the
// request fails and the pool remains (renku-data-services @ e81895b4: components/renku_data_services/crc/db.py
// delete_quota, k8s/clients.py K8sClusterClient.delete).
func (c *connection) deleteQuota(ctx context.Context, id string) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	classes, err := client.SchedulingV1().PriorityClasses().List(ctx, named(id))
	if err != nil && !refused(err) {
		return remoteProblem(err)
	}
	foreground := metav1.DeletePropagationForeground
	if err == nil && len(classes.Items) > 0 {
		err := client.SchedulingV1().PriorityClasses().Delete(ctx, id, metav1.DeleteOptions{PropagationPolicy: &foreground})
		if err != nil && !apierrors.IsNotFound(err) {
			return remoteProblem(err)
		}
	}
	quotas, err := client.CoreV1().ResourceQuotas(c.namespace).List(ctx, named(id))
	if err != nil && !refused(err) {
		return remoteProblem(err)
	}
	if err != nil || len(quotas.Items) == 0 {
		return nil
	}
	err = client.CoreV1().ResourceQuotas(c.namespace).Delete(ctx, id, metav1.DeleteOptions{PropagationPolicy: &foreground})
	if err != nil && !apierrors.IsNotFound(err) {
		return remoteProblem(err)
	}
	return nil
}
