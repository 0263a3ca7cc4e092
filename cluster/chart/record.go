package chart

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	rcommon "helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/clean"
)

type managed = metav1.ManagedFieldsEntry

// mostStored is the maximum size of a Secret in bytes.
const mostStored = 1 << 20

// Current returns the newest revision of a release with any status. It returns ErrNoRelease if there is none. It reads
// directly from the API server and is not tracked.
func Current(ctx context.Context, c *cluster.Cluster, namespace, name string) (*Release, error) {
	if err := checkName(namespace, name); err != nil {
		return nil, err
	}
	r, _, err := current(ctx, c, namespace, name)
	return r, err
}

// current returns the newest revision of a release and its Secret. It reads them directly from the API server, because
// changes must not be based on cached objects, which can be outdated.
func current(
	ctx context.Context, c *cluster.Cluster, namespace, name string,
) (*Release, *unstructured.Unstructured, error) {
	list, err := c.Find(ctx, secrets, namespace, cluster.Selector{Labels: "owner=helm,name=" + name})
	if err != nil {
		return nil, nil, fmt.Errorf("list the Helm releases: %w", err)
	}
	list = slices.DeleteFunc(
		list, func(m metav1.PartialObjectMetadata) bool { return m.Name != secretName(name, number(m.Labels)) },
	)
	if len(list) == 0 {
		return nil, nil, fmt.Errorf("release %s in namespace %s: %w", name, namespace, ErrNoRelease)
	}
	last := slices.MaxFunc(
		list, func(a, b metav1.PartialObjectMetadata) int { return number(a.Labels) - number(b.Labels) },
	)
	return fetched(ctx, c, namespace, last.Name)
}

// UnreadableError means that a Secret has the labels of a release but does not contain a valid one.
type UnreadableError struct {
	Namespace, Secret string
	Err               error
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf(
		"the release in Secret %s/%s cannot be read: %v", clean.Text(e.Namespace), clean.Text(e.Secret), e.Err,
	)
}

func (e *UnreadableError) Unwrap() error { return e.Err }

// fetched reads the release in a Secret from the API server. It returns an UnreadableError if the Secret contains no
// valid release.
func fetched(
	ctx context.Context, c *cluster.Cluster, namespace, secret string,
) (*Release, *unstructured.Unstructured, error) {
	live, err := c.Fetch(ctx, secretOf(namespace, secret))
	if apierrors.IsNotFound(err) {
		return nil, nil, ErrNoRelease
	}
	if err != nil {
		return nil, nil, err
	}
	r, err := opened(live)
	return r, live, err
}

func opened(secret *unstructured.Unstructured) (*Release, error) {
	packed, _, _ := unstructured.NestedString(secret.Object, "data", storageKey)
	salt, _, _ := unstructured.NestedString(secret.Object, "data", saltKey)
	data, err := base64.StdEncoding.DecodeString(packed)
	grains, saltErr := base64.StdEncoding.DecodeString(salt)
	if err != nil || saltErr != nil {
		return nil, &UnreadableError{secret.GetNamespace(), secret.GetName(), errors.New("it is not base64")}
	}
	r, err := decodeOf(secret.GetName(), string(data))
	if err != nil {
		return nil, &UnreadableError{secret.GetNamespace(), secret.GetName(), err}
	}
	r.Namespace, r.Labels = secret.GetNamespace(), secret.GetLabels()
	r.UID, r.Created, r.inner.salt = secret.GetUID(), secret.GetCreationTimestamp().Time, string(grains)
	return r, nil
}

// ContentOf returns Release.Content for the release in a Secret.
func ContentOf(secret *unstructured.Unstructured) (string, error) {
	r, err := opened(secret)
	if err != nil {
		return "", err
	}
	return r.Content(), nil
}

// Revisions returns the metadata of the Secrets of all revisions of a release.
func Revisions(
	ctx context.Context, c *cluster.Cluster, namespace, name string,
) ([]metav1.PartialObjectMetadata, error) {
	if err := checkName(namespace, name); err != nil {
		return nil, err
	}
	list, err := c.Find(ctx, secrets, namespace, cluster.Selector{Labels: "owner=helm,name=" + name})
	if err != nil {
		return nil, fmt.Errorf("list the revisions of release %s: %w", name, err)
	}
	return slices.DeleteFunc(
		list, func(m metav1.PartialObjectMetadata) bool { return m.Name != secretName(name, number(m.Labels)) },
	), nil
}

func number(labels map[string]string) int {
	n, _ := strconv.Atoi(labels["version"])
	return n
}

// secretName returns Helm's name for the Secret of a revision (helm.sh/helm/v4/pkg/storage/storage.go).
func secretName(name string, revision int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", name, revision)
}

func secretOf(namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}}
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// Record returns the Secret of the revision that the work writes or keeps, for display in a plan. The Secret does not
// have the request's Labels and Annotations. Its data is not masked.
func (w *Work) Record() (*unstructured.Unstructured, error) {
	if w.Kind != Keep {
		return encode(w.release(Deployed, ""), w.salt)
	}
	o := secretOf(w.Old.Namespace, w.secret.GetName())
	labels := map[string]string{}
	for _, k := range []string{"owner", "name", "status", "version"} {
		labels[k] = w.Old.Labels[k]
	}
	o.SetLabels(labels)
	o.Object["type"] = storageType
	o.Object["data"] = w.secret.Object["data"]
	return o, nil
}

// release returns the revision that the work writes, as Helm's type. A new release has no apply method. Helm treats
// this as client-side apply, so that users can run helm upgrade later without field manager conflicts.
func (w *Work) release(status, words string) *release.Release {
	now := time.Now()
	how := ""
	if w.Old != nil {
		how = w.Old.inner.how
	}
	return &release.Release{
		ApplyMethod: how,
		Name:        w.request.Name, Namespace: w.request.Namespace, Version: w.revision(),
		Chart: w.rendered.chart, Config: w.rendered.config, Manifest: w.rendered.manifest, Hooks: w.rendered.hooks,
		Info: &release.Info{
			FirstDeployed: now, LastDeployed: now, Status: rcommon.Status(status), Description: words, Notes: w.rendered.Notes,
		},
	}
}

// encode returns the Secret of a release (helm.sh/helm/v4/pkg/storage/driver).
func encode(r *release.Release, salt string) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("record release %s: %w", r.Name, err)
	}
	data, err := pack(raw)
	if err != nil {
		return nil, err
	}
	if len(data) > mostStored {
		return nil, fmt.Errorf(
			"release %s cannot be recorded: it has %d KiB when packed, and a Secret can contain %d; remove files from the "+
				"chart that no template uses",
			r.Name, len(data)>>10, mostStored>>10,
		)
	}
	o := secretOf(r.Namespace, secretName(r.Name, r.Version))
	o.SetLabels(map[string]string{
		"owner": "helm", "name": r.Name, "status": string(r.Info.Status), "version": strconv.Itoa(r.Version),
	})
	o.Object["type"] = storageType
	o.Object["data"] = map[string]any{storageKey: base64.StdEncoding.EncodeToString(data)}
	if salt != "" {
		_ = unstructured.SetNestedField(o.Object, base64.StdEncoding.EncodeToString([]byte(salt)), "data", saltKey)
	}
	return o, nil
}

// pack compresses data with gzip and encodes the result in base64.
func pack(raw []byte) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, _ = z.Write(raw) // bytes.Buffer never fails
	if err := z.Close(); err != nil {
		return nil, err
	}
	return base64.StdEncoding.AppendEncode(nil, out.Bytes()), nil
}

// supersede sets the status of the old revision to superseded. If the work resumes the old revision, supersede sets the
// status of the revisions before it instead.
func (w *Work) supersede(ctx context.Context, c *cluster.Cluster) error {
	switch {
	case w.Old == nil, w.Old.Status == Failed, w.Old.Status == Uninstalled:
		return nil
	case !w.resumes:
		return w.superseded(ctx, c, w.secret)
	}
	list, err := Revisions(ctx, c, w.Old.Namespace, w.Old.Name)
	if err != nil {
		return err
	}
	for _, m := range list {
		if m.Labels["status"] != Deployed || number(m.Labels) >= w.Old.Revision {
			continue
		}
		_, secret, err := fetched(ctx, c, m.Namespace, m.Name)
		if err == nil {
			err = w.superseded(ctx, c, secret)
		}
		if err != nil && !errors.Is(err, ErrNoRelease) {
			return err
		}
	}
	return nil
}

// superseded sets the status in the Secret of one revision to superseded. It keeps all other fields, including unknown
// fields from a newer version of Helm.
func (w *Work) superseded(ctx context.Context, c *cluster.Cluster, secret *unstructured.Unstructured) error {
	packed, _, _ := unstructured.NestedString(secret.Object, "data", storageKey)
	outer, err := base64.StdEncoding.DecodeString(packed)
	if err != nil {
		return err
	}
	inner, err := base64.StdEncoding.DecodeString(string(outer))
	if err != nil {
		return err
	}
	raw, err := unpack(inner)
	if err != nil {
		return err
	}
	var doc map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&doc); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(doc, Superseded, "info", "status"); err != nil {
		return err
	}
	if raw, err = json.Marshal(doc); err != nil {
		return err
	}
	data, err := pack(raw)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"status": Superseded}},
		"data":     map[string]any{storageKey: base64.StdEncoding.EncodeToString(data)},
	})
	if err != nil {
		return err
	}
	_, err = c.Patch(
		ctx, secrets, w.Old.Namespace, secret.GetName(), patch,
		cluster.PatchOptions{Manager: w.request.Manager, UID: secret.GetUID()},
	)
	return err
}
