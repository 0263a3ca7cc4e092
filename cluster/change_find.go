package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster/failure"
)

const onlyMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// Find lists the metadata of the objects that s selects. namespace "" means all namespaces. Find requests pages of 500
// objects. If the API server does not serve the resource, the error is failure.ErrNotServed.
func (c *Cluster) Find(
	ctx context.Context, gvr schema.GroupVersionResource, namespace string, s Selector,
) ([]metav1.PartialObjectMetadata, error) {
	at := location{gvr: gvr, namespace: namespace}
	doing := "list " + at.String()
	found, err := c.pages(ctx, doing, at, s, pageSize)
	if apierrors.IsResourceExpired(err) {
		// The continue token expired: list everything in one page.
		found, err = c.pages(ctx, doing, at, s, 0)
	}
	if apierrors.IsNotFound(err) {
		return nil, failed(ctx, doing, fmt.Errorf("%w (%w)", failure.ErrNotServed, err))
	}
	return found, err
}

func (c *Cluster) pages(
	ctx context.Context, doing string, at location, s Selector, limit int,
) ([]metav1.PartialObjectMetadata, error) {
	params := map[string]string{}
	if limit > 0 {
		params["limit"] = strconv.Itoa(limit)
	}
	if s.Labels != "" {
		params["labelSelector"] = s.Labels
	}
	if s.Fields != "" {
		params["fieldSelector"] = s.Fields
	}
	var out []metav1.PartialObjectMetadata
	for {
		data, err := c.raw(ctx, doing, request{verb: http.MethodGet, at: at, params: params, accept: onlyMetadata})
		if err != nil {
			return nil, err
		}
		var page metav1.PartialObjectMetadataList
		if err := json.Unmarshal(data, &page); err != nil {
			return nil, failed(ctx, doing, failure.Unreadable(data, err))
		}
		if !strings.HasSuffix(page.Kind, "List") {
			return nil, failed(ctx, doing, failure.NotJSON(errors.New("the answer is not a list")))
		}
		out = append(out, page.Items...)
		if page.Continue == "" {
			return out, nil
		}
		params["continue"] = page.Continue
	}
}
