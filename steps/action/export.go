package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/steps"
	"carrick/steps/inventory"
)

// Exporter is a Doer that can return what it would create, for users who apply it with other tools. It changes nothing.
// If a fact does not exist yet, it returns an AbsentError.
type Exporter interface {
	Export(context.Context, steps.Env) ([]Exported, error)
}

// Exported is one item of an export: exactly one of Object, Path, Hand, Left and Note is set. None of them contains a
// secret.
type Exported struct {
	// Object is a manifest as rendered, without the marks of a link, because carrick does not apply it.
	Object *unstructured.Unstructured
	// Path is a file, relative to the files of its side: "etc/note.conf" for /etc/note.conf on a host, otherwise a name of
	// its own ("operator.values.yaml"). Content contains no secret; Mode 0 is 0644.
	Path    string
	Content []byte
	Mode    fs.FileMode
	// Hand is what to do manually: shell commands to run in the folder of the export, or text after a #. In the commands,
	// Path is files/SIDE/PATH, and the objects of an action are in SIDE/ACTION.yaml and SIDE/ACTION.crds.yaml.
	Hand string
	// Left is a secret that is omitted: its name and its keys.
	Left string
	// Note is additional information, such as an alternative.
	Note string
}

// ExportOf returns the export of an action. An action whose Doer is not an Exporter must be done manually.
func ExportOf(ctx context.Context, env steps.Env, a *steps.Action) ([]Exported, error) {
	e, can := a.Doer.(Exporter)
	if c, isCall := a.Doer.(Call); !can || (isCall && c.Exports == nil) {
		return []Exported{{Hand: "# " + a.Title}}, nil
	}
	return e.Export(ctx, env)
}

// CheckExport rejects items that an export can't contain. The export may be committed to a repository.
func CheckExport(action string, things []Exported) error {
	for _, t := range things {
		if t.Path != "" && (!fs.ValidPath(t.Path) || t.Path == ".") {
			return fmt.Errorf("export %s: %q is outside the export directory", action, t.Path)
		}
		if t.Object != nil && withheld(t.Object) {
			return fmt.Errorf("export %s: %s contains secret values", action, inventory.Describe(t.Object))
		}
	}
	return nil
}

func hasSecretValues(o *unstructured.Unstructured) bool {
	return inventory.IsSecret(o) && (o.Object["data"] != nil || o.Object["stringData"] != nil)
}

// Export returns the objects as rendered. Secrets with values are omitted and named, except those that contain only
// certificates.
func (m Manifest) Export(ctx context.Context, env steps.Env) ([]Exported, error) {
	objs, err := m.Objects(ctx, env)
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) && m.secretsOnly(env.Assets) {
		return []Exported{{Left: "a Secret whose values do not exist yet: " + absent.Error()}}, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Exported
	for _, obj := range objs {
		if withheld(obj) {
			data, _, _ := unstructured.NestedMap(obj.Object, "data")
			out = append(out, Exported{Left: withKeys(inventory.Describe(obj), slices.Sorted(maps.Keys(data)))})
			continue
		}
		out = append(out, Exported{Object: obj})
		if hasSecretValues(obj) {
			out = append(out, Exported{Note: inventory.Describe(obj) + " contains only certificates, which are public"})
		}
	}
	return out, nil
}

// withheld reports whether an object must not be in an export.
func withheld(o *unstructured.Unstructured) bool {
	data, _ := o.Object["data"].(map[string]any)
	if !hasSecretValues(o) || (o.Object["stringData"] == nil && onlyCertificates(data)) {
		return false
	}
	return true
}

// secretsOnly reports whether the asset contains only Secrets with values: an export omits these whether or not the
// values are known.
func (m Manifest) secretsOnly(assets fs.FS) bool {
	docs, err := Documents(assets, m.File)
	for _, doc := range docs {
		if !hasSecretValues(&unstructured.Unstructured{Object: doc}) {
			return false
		}
	}
	return err == nil && len(docs) > 0
}

// Export names the Secret: values that are generated once can't be exported.
func (m Mint) Export(ctx context.Context, env steps.Env) ([]Exported, error) {
	objs, err := m.Asset().Objects(ctx, env)
	if err != nil {
		return nil, err
	}
	var out []Exported
	for _, obj := range objs {
		out = append(out, Exported{Left: withKeys(inventory.Describe(obj), m.Keys)})
	}
	return out, nil
}

func withKeys(what string, keys []string) string {
	if len(keys) == 0 {
		return what
	}
	word := "key"
	if len(keys) > 1 {
		word = "keys"
	}
	return fmt.Sprintf("%s (%s %s)", what, word, strings.Join(keys, ", "))
}

// Export returns the file. A secret file is omitted and named.
func (f File) Export(ctx context.Context, env steps.Env) ([]Exported, error) {
	at := f.Path
	if f.PathOf != nil {
		at = f.PathOf(env)
	}
	if f.Secret {
		return []Exported{{Left: "file " + at}}, nil
	}
	content, err := f.Content(ctx, env)
	if err := errors.Join(err, env.Sound()); err != nil {
		return nil, err
	}
	return []Exported{
		{Path: strings.TrimPrefix(path.Clean(at), "/"), Content: []byte(content.Reveal()), Mode: f.mode()},
	}, nil
}

// Export calls Exports. If that is nil, the action's title is what remains to be done manually.
func (c Call) Export(ctx context.Context, env steps.Env) ([]Exported, error) {
	if c.Exports == nil {
		return nil, nil
	}
	return c.Exports(ctx, env)
}
