package charts

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Release describes a chart that is installed with Helm.
type Release struct {
	Name, Namespace string
	Values          map[string]any // values from the user
	Revision        int            // 0 means 1
	Replaced        string         // chart version of the superseded revision; "" if this revision is deployed
	At              time.Time      // time of installation
}

// Objects returns everything that Helm would create: the chart's objects with Helm's labels and annotations, and the
// release Secret.
func (c *Chart) Objects(r Release) ([]*unstructured.Unstructured, error) {
	objects, manifest, err := c.Render(r.Name, r.Namespace, r.Values)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		mark(o, r)
	}
	secret, err := c.secret(r, manifest)
	if err != nil {
		return nil, fmt.Errorf("release %s: %w", r.Name, err)
	}
	return append(objects, secret), nil
}

// Before returns the Secret of a superseded revision. Helm keeps it as history.
func (c *Chart) Before(r Release) (*unstructured.Unstructured, error) {
	_, manifest, err := c.Render(r.Name, r.Namespace, r.Values)
	if err != nil {
		return nil, err
	}
	return c.secret(r, manifest)
}

// mark adds the labels and annotations that Helm 3 and later add on installation.
func mark(o *unstructured.Unstructured, r Release) {
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels["app.kubernetes.io/managed-by"] = "Helm"
	annotations["meta.helm.sh/release-name"] = r.Name
	annotations["meta.helm.sh/release-namespace"] = r.Namespace
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
}

// secret returns the Secret in which Helm stores a release as gzipped and base64-encoded JSON (helm/helm
// pkg/storage/driver).
func (c *Chart) secret(r Release, manifest string) (*unstructured.Unstructured, error) {
	revision := max(r.Revision, 1)
	var templates []any
	for _, name := range c.names("templates/") {
		templates = append(templates, map[string]any{"name": name, "data": base64.StdEncoding.EncodeToString(c.Files[name])})
	}
	status, metadata := "deployed", maps.Clone(c.Metadata)
	if r.Replaced != "" {
		status, metadata["version"] = "superseded", r.Replaced
	}
	at := r.At.UTC().Format(time.RFC3339)
	values := r.Values
	if values == nil {
		values = map[string]any{}
	}
	data, err := json.Marshal(map[string]any{
		"name": r.Name, "namespace": r.Namespace, "version": revision,
		"info": map[string]any{
			"first_deployed": at, "last_deployed": at, "deleted": "",
			"description": "Install complete", "status": status,
		},
		"chart": map[string]any{
			"metadata": metadata, "lock": nil, "templates": templates, "values": c.Values, "schema": nil, "files": []any{},
		},
		"config": values, "manifest": manifest,
	})
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write(data); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	encoded := base64.StdEncoding.EncodeToString(packed.Bytes()) // Helm's own encoding; the API adds another one
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
		"metadata": map[string]any{
			"name": fmt.Sprintf("sh.helm.release.v1.%s.v%d", r.Name, revision), "namespace": r.Namespace,
			"labels": map[string]any{
				"name": r.Name, "owner": "helm", "status": status, "version": strconv.Itoa(revision),
				"modifiedAt": strconv.FormatInt(r.At.Unix(), 10),
			},
		},
		"data": map[string]any{"release": base64.StdEncoding.EncodeToString([]byte(encoded))},
	}}, nil
}
