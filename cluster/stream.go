package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"carrick/cluster/failure"
)

// errMoreKeys ends an attempt when a caller requests a value of a Secret that the attempt has dropped.
var errMoreKeys = errors.New("more keys of the Secret are requested")

// watchStreaming opens a watch as a streaming list, which starts with all existing objects. It processes the events and
// returns the error that ended the watch. It requires only the permission to watch.
func (r *read) watchStreaming(ctx context.Context, silent *time.Timer) error {
	req := r.request(false).
		Param("watch", "true").
		Param("sendInitialEvents", "true").
		Param("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan)).
		Param("allowWatchBookmarks", "true")
	return r.follow(ctx, req, silent, map[string]record{})
}

// watchListed lists the objects and then watches from the list's resource version, for API servers that do not support
// streaming lists. It returns the error that ended the watch.
func (r *read) watchListed(ctx context.Context, silent *time.Timer) error {
	bounded, cancel := r.c.bounded(ctx)
	defer cancel()
	records, version, err := r.list(bounded)
	if err != nil {
		return err
	}
	r.c.listsFirst.Store(true)
	silent.Reset(r.c.options.Silence)
	r.publish(records, false)
	req := r.request(false).
		Param("watch", "true").
		Param("resourceVersion", version).
		Param("allowWatchBookmarks", "true")
	return r.follow(ctx, req, silent, nil)
}

// follow reads the events of a watch and returns the error that ended the watch. It collects the initial list in
// initial. If initial is nil, the list is already known.
func (r *read) follow(ctx context.Context, req *rest.Request, silent *time.Timer, initial map[string]record) error {
	body, err := req.Stream(ctx)
	if err != nil {
		return caused(ctx, err)
	}
	defer body.Close()
	if initial == nil {
		silent.Stop()
		r.stand()
		defer r.fall()
	}
	events := newEvents(r.c.bodies.bound(ctx, body))
	defer events.body.reset()
	for {
		ev, err := events.next()
		if err != nil {
			return caused(ctx, err)
		}
		object, err := ev.decode()
		if err != nil {
			return err
		}
		if initial == nil {
			r.apply(ev.Type, object)
			continue
		}
		silent.Reset(r.c.options.Silence)
		if ev.Type != watch.Bookmark {
			r.collectEvent(initial, ev.Type, object)
			continue
		}
		if object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			silent.Stop()
			r.stand()
			defer r.fall()
			r.publish(initial, false)
			initial = nil
		}
	}
}

// stand records that a watch is established. fall records that the watch has ended.
func (r *read) stand() {
	r.stood, r.refusals, r.refusedAt = true, 0, time.Time{}
	r.c.outages.lives(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live = true
}

func (r *read) fall() {
	r.c.outages.lives(-1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live = false
	r.good = later(r.good, r.c.wire.lastHeard())
}

func (r *read) collectEvent(initial map[string]record, kind watch.EventType, object *unstructured.Unstructured) {
	if kind == watch.Deleted {
		delete(initial, recordKey(object))
		return
	}
	r.collect(initial, object)
}

func (r *read) apply(kind watch.EventType, object *unstructured.Unstructured) {
	switch kind {
	case watch.Added, watch.Modified:
		if r.asked(object) {
			rec := r.take(object)
			r.update(recordKey(object), &rec)
		}
	case watch.Deleted:
		r.update(recordKey(object), nil)
	}
}

var errNoEvent = errors.New("it is not a watch event")

type event struct {
	Type   watch.EventType `json:"type"`
	Object json.RawMessage `json:"object"`
}

type events struct {
	decoder *json.Decoder
	body    *bounded
}

func newEvents(body *bounded) *events { return &events{json.NewDecoder(body), body} }

// next returns the next event. It returns failure.ErrEnded if the watch ended normally, failure.ErrNotJSON if the data
// does not come from an API server, and otherwise the network error.
func (e *events) next() (event, error) {
	e.body.reset()
	var ev event
	err := e.decoder.Decode(&ev)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax), errors.As(err, &kind):
		return ev, failure.NotJSON(errNoEvent)
	case errors.Is(err, io.EOF):
		return ev, failure.ErrEnded
	}
	return ev, err
}

// decode returns the object of an event. If the event is an error, decode returns that error.
func (e event) decode() (*unstructured.Unstructured, error) {
	if e.Type == watch.Error {
		status := &metav1.Status{}
		if err := json.Unmarshal(e.Object, status); err != nil {
			return nil, failure.NotJSON(err)
		}
		return nil, apierrors.FromObject(status)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(e.Object); err != nil {
		return nil, failure.NotJSON(err)
	}
	return object, nil
}
