package stepstest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"carrick/cluster/clustertest/merge"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
)

// mutantBase is the green state from which mutants are derived. It is the state "healthy" with everything that the
// guide's actions write, in the form that apply writes.
type mutantBase struct {
	*fakes
	dir    string
	made   map[*unstructured.Unstructured][]*unstructured.Unstructured // what actions write in each object
	files  map[string]string                                           // the action that writes each file
	passes []steps.Cell
	reads  map[steps.Cell]*reads
}

// onceKinds lists the kinds that run once. The drift checks ignore them, and so does the base.
var onceKinds = []string{"Job", "Pod", "CertificateSigningRequest"}

// Mutants are derived from these states. "made" is for a guide that creates entries in an API. It is "healthy" with the
// link's notes about these entries.
const (
	healthyState = "healthy"
	madeState    = "made"
)

func newMutantBase(t *testing.T, g *steps.Guide, assets fs.FS, dir string) *mutantBase {
	t.Helper()
	name := madeState
	if _, err := os.Stat(filepath.Join(dir, madeState+".txtar")); err != nil {
		name = healthyState
	}
	b := &mutantBase{
		fakes: newFakes(t, g, assets, dir, name), dir: dir,
		made:  map[*unstructured.Unstructured][]*unstructured.Unstructured{},
		files: map[string]string{}, reads: map[steps.Cell]*reads{},
	}
	for _, s := range b.servers {
		s.merger, s.asked = merge.New(), &asked{}
	}
	b.web.asked = &asked{}
	before := b.look(t)
	b.write(t)
	after := b.look(t)
	for _, c := range g.Cells() {
		switch was, is := before[c], after[c]; {
		case is.Status == steps.Pass:
			b.passes = append(b.passes, c)
		case was.Status != is.Status || action.IsDrift(c.Check) && is.Status != steps.Skip:
			t.Errorf("%s on the %s is %s in state %s, and %s once everything is applied: %s",
				c.Check, c.Side, was.Status, name, is.Status, is.Found)
		}
	}
	b.trace(t)
	return b
}

func (b *mutantBase) look(t *testing.T) map[steps.Cell]steps.Result {
	t.Helper()
	s := b.session(t)
	defer s.Close()
	out := map[steps.Cell]steps.Result{}
	for _, c := range b.guide.Cells() {
		out[c], _ = s.Probe(t.Context(), c)
	}
	return out
}

type inventoryEntry struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid"`
	Created    bool      `json:"created"`
}

// write adds everything that the answers configure to the state.
func (b *mutantBase) write(t *testing.T) {
	t.Helper()
	s := b.session(t)
	defer s.Close()
	inventories := map[steps.Side]map[string]string{}
	for i := range b.guide.Steps {
		for _, a := range b.guide.Steps[i].Actions {
			wanted, err := s.Wanted(t.Context(), a.Name)
			if err != nil {
				t.Fatalf("%s: %v", a.Name, err)
			}
			if !wanted {
				continue
			}
			if a.On == hostSide(b.guide) {
				b.writeFile(t, s, a.Name)
				continue
			}
			entries := b.writeObjects(t, s, &a)
			if len(entries) == 0 {
				continue
			}
			text, err := json.Marshal(entries)
			if err != nil {
				t.Fatal(err)
			}
			if inventories[a.On] == nil {
				inventories[a.On] = map[string]string{}
			}
			inventories[a.On]["carrick/inventory."+a.Name] = string(text)
		}
	}
	for side, notes := range inventories {
		b.servers[side].noteInventory(notes)
	}
}

func (s *server) noteInventory(notes map[string]string) {
	at := slices.IndexFunc(s.objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "ClusterRole" && o.GetName() == inventoryRole
	})
	if at < 0 {
		o := merge.Empty(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
		o.SetName(inventoryRole)
		o.SetUID("inventory")
		at, s.objects = len(s.objects), append(s.objects, o)
	}
	all := s.objects[at].GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, notes)
	s.objects[at].SetAnnotations(all)
}

// inventoryRole is the ClusterRole of the inventory. It belongs to the engine and is not mutated.
const inventoryRole = "carrick:test"

func (b *mutantBase) writeObjects(t *testing.T, s *engine.Session, a *steps.Action) []inventoryEntry {
	t.Helper()
	objs, err := s.Render(t.Context(), a.Name)
	if err != nil {
		t.Fatalf("%s: %v", a.Name, err)
	}
	srv, entries := b.servers[a.On], []inventoryEntry{}
	for _, o := range objs {
		if slices.Contains(onceKinds, o.GetKind()) {
			continue
		}
		if o.GetKind() == "Secret" {
			foldStringData(o.Object)
		}
		at := slices.IndexFunc(srv.objects, func(x *unstructured.Unstructured) bool { return sameObject(x, o) })
		var live *unstructured.Unstructured
		if at >= 0 {
			live = srv.objects[at]
		}
		wholeManagers(live)
		kept, err := srv.merger.Apply(live, o, "carrick.test."+a.Name, true)
		if err != nil {
			t.Fatalf("%s: %s %s: %v", a.Name, o.GetKind(), o.GetName(), err)
		}
		uid := types.UID(fmt.Sprintf("%s/%s/%s", o.GetKind(), o.GetNamespace(), o.GetName()))
		kept.SetUID(cmp.Or(kept.GetUID(), uid))
		writtenLongAgo(kept, "carrick.test."+a.Name)
		b.made[kept] = append(b.made[live], withoutMarks(o))
		if at >= 0 {
			delete(b.made, live)
			srv.objects[at] = kept
		} else {
			srv.objects = append(srv.objects, kept)
		}
		srv.written = append(srv.written, kept)
		entries = append(entries, inventoryEntry{
			APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), UID: kept.GetUID(),
			Created: true,
		})
	}
	return entries
}

// withoutMarks returns an object without carrick's labels and annotations. They need no mutants, because undo uses the
// inventory and drift checks ignore them.
func withoutMarks(o *unstructured.Unstructured) *unstructured.Unstructured {
	out := o.DeepCopy()
	meta := out.Object["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		marks, _ := meta[field].(map[string]any)
		maps.DeleteFunc(marks, func(key string, _ any) bool { return strings.HasPrefix(key, "carrick/") })
		if len(marks) == 0 {
			delete(meta, field)
		}
	}
	return out
}

// wholeManagers completes managedFields if a state contains only the part that a check reads.
func wholeManagers(o *unstructured.Unstructured) {
	if o == nil {
		return
	}
	list := o.GetManagedFields()
	for i := range list {
		list[i].APIVersion = cmp.Or(list[i].APIVersion, o.GetAPIVersion())
		list[i].FieldsType = cmp.Or(list[i].FieldsType, "FieldsV1")
		list[i].Operation = cmp.Or(list[i].Operation, metav1.ManagedFieldsOperationUpdate)
		if list[i].FieldsV1 == nil {
			list[i].FieldsV1 = metav1.NewFieldsV1("{}")
		}
	}
	o.SetManagedFields(list)
}

// writtenLongAgo sets the time of a manager's writes to 2020, so that they precede every start time in the state.
func writtenLongAgo(o *unstructured.Unstructured, manager string) {
	list := o.GetManagedFields()
	for i := range list {
		if list[i].Manager == manager {
			list[i].Time = &metav1.Time{Time: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}
		}
	}
	o.SetManagedFields(list)
}

func sameObject(a, b *unstructured.Unstructured) bool {
	same := a.GetNamespace() == b.GetNamespace() && a.GetName() == b.GetName()
	return same && a.GroupVersionKind() == b.GroupVersionKind()
}

func (b *mutantBase) writeFile(t *testing.T, s *engine.Session, action string) {
	t.Helper()
	f, err := s.RenderFile(t.Context(), action)
	if err != nil {
		t.Fatalf("%s: %v", action, err)
	}
	if f == nil {
		return
	}
	m := b.state.machine
	m.files[f.Path], m.modes[f.Path], b.files[f.Path] = f.Content, f.Mode, action
	for path, text := range map[string]string{f.Path: f.Content, f.RecordPath: f.Record} {
		mode := f.Mode
		if path == f.RecordPath {
			mode = 0o600
		}
		if err := writeFile(filepath.Join(b.root, path), text, mode); err != nil {
			t.Fatal(err)
		}
	}
}

// trace records what each passing check reads.
func (b *mutantBase) trace(t *testing.T) {
	t.Helper()
	for _, s := range b.servers {
		s.asked.take()
	}
	b.web.asked.take()
	for _, c := range b.passes {
		s := b.session(t)
		if r, _ := s.Probe(t.Context(), c); r.Status != steps.Pass {
			t.Errorf("%s on the %s does not pass a second time: %s", c.Check, c.Side, r.Found)
		}
		s.Close()
		b.reads[c] = newReads()
		for side, srv := range b.servers {
			for _, q := range srv.asked.take() {
				b.reads[c].add(side, q)
			}
		}
		for _, q := range b.web.asked.take() {
			b.reads[c].pages[q.path] = true
		}
	}
	for _, s := range b.servers {
		s.asked = nil
	}
	b.web.asked = nil
}

func resourceOf(o *unstructured.Unstructured) (group, resource string) {
	gvr, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	return gvr.Group, gvr.Resource
}
