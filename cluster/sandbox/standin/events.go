package standin

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// againAfter is the minimum interval between two increments of a repeated event's count.
const againAfter = 10 * time.Second

// Events records the events of one component. The zero value is ready to use.
type Events struct {
	mu   sync.Mutex
	said map[string]*corev1.Event // by object and message
}

// Event describes an event to record.
type Event struct {
	Of        corev1.ObjectReference
	Component string
	Host      string // the node, for kubelet events
	Type      string
	Reason    string
	Message   string
}

// Say creates an event, or increments the count of an existing one. The count grows at most once per againAfter.
func (e *Events) Say(ctx context.Context, client kubernetes.Interface, event Event) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := fmt.Sprint(event.Of.UID, event.Reason, event.Message)
	now := metav1.Now()
	was := e.said[key]
	if was != nil && now.Sub(was.LastTimestamp.Time) < againAfter {
		return nil
	}
	namespace := event.Of.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	if was != nil {
		patch := fmt.Sprintf(`{"count":%d,"lastTimestamp":%q}`, was.Count+1, now.UTC().Format(time.RFC3339))
		patched, err := client.CoreV1().Events(namespace).Patch(
			ctx, was.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{},
		)
		if err == nil {
			e.said[key] = patched
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	made := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: event.Of.Name + ".", Namespace: namespace},
		InvolvedObject: event.Of, Type: event.Type, Reason: event.Reason, Message: event.Message,
		Source:         corev1.EventSource{Component: event.Component, Host: event.Host},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
		ReportingController: event.Component, ReportingInstance: event.Host,
	}
	made, err := client.CoreV1().Events(namespace).Create(ctx, made, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if e.said == nil {
		e.said = map[string]*corev1.Event{}
	}
	e.said[key] = made
	return nil
}
