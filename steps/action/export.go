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

// Exporter is a Doer that returns what it would create, for users who apply it with other tools. Export changes
// nothing. If a fact does not exist yet, Export returns an AbsentError.
type Exporter interface {
	Export(context.Context, steps.Env) ([]Exported, error)
}

// Exported is one item of an export. Exactly one of Object, Path, Hand, Left and Note is set. No field contains a
// secret.
type Exported struct {
	// Object is a rendered manifest. It has no ownership labels, because carrick does not apply it.
	Object *unstructured.Unstructured
	// Path is relative to the files of its side. For a host, "etc/note.conf" is /etc/note.conf. Otherwise Path is a
	// unique name, such as "operator.values.yaml". Mode 0 means 0644.
	Path    string
	Content []byte
	Mode    fs.FileMode
	// Hand is a manual step. It consists of shell commands to run in the export directory, or of text after a #. In
	// commands, Path is files/SIDE/PATH. The objects of an action are in SIDE/ACTION.yaml and SIDE/ACTION.crds.yaml.
	Hand string
	// Left names an omitted secret and its keys.
	Left string
	// Note is additional information, such as an alternative.
	Note string
}

// ExportOf returns the export of an action. If the action's Doer is not an Exporter, the export is a manual step.
func ExportOf(ctx context.Context, env steps.Env, a *steps.Action) ([]Exported, error) {
	e, can := a.Doer.(Exporter)
	if c, isCall := a.Doer.(Call); !can || (isCall && c.Exports == nil) {
		return []Exported{{Hand: "# " + a.Title}}, nil
	}
	return e.Export(ctx, env)
}

// CheckExport rejects items that must not be exported. A user might commit the export to a repository.
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

// Export returns the objects as rendered. It omits Secrets with values and names them instead. Secrets that contain
// only certificates are not omitted.
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

// secretsOnly reports whether the asset contains only Secrets with values. An export omits such Secrets even if the
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

// Export names the Secret. Its values are generated once and can't be exported.
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

// Export returns the file. If the file is secret, Export only names it.
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

// Export calls Exports. If Exports is nil, it returns the action's title as a manual step.
func (c Call) Export(ctx context.Context, env steps.Env) ([]Exported, error) {
	if c.Exports == nil {
		return nil, nil
	}
	return c.Exports(ctx, env)
}
