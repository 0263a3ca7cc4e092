package steps

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster"
)

// LinkLabelPrefix begins the label of each object that a link has written: the name of the link follows, and the value
// is the action.
const LinkLabelPrefix = "carrick/link."

// LinkLabel is the label of what a link has written.
func LinkLabel(link string) string { return LinkLabelPrefix + link }

// Manager is the field manager of the action in hand, of this link. With one for
// all, a second link to an object would prune what the first one wrote.
func (e Env) Manager() string { return FieldManager(e.Link, e.Action) }

// Marked selects what an action of this link has written, of any kind; "" is any
// action.
func (e Env) OwnedBy(action string) cluster.Selector {
	if action == "" {
		return cluster.Selector{Labels: LinkLabel(e.Link)}
	}
	return cluster.Selector{Labels: LinkLabel(e.Link) + "=" + action}
}

// FieldManager is the manager of the fields that an action of a link has written.
func FieldManager(link, action string) string { return "carrick." + link + "." + action }

// OwnsKey reports whether a field manager's entry has a key under data, of a ConfigMap or a Secret.
func OwnsKey(f metav1.ManagedFieldsEntry, key string) bool {
	var set struct {
		Data map[string]any `json:"f:data"`
	}
	if f.FieldsV1 == nil || json.Unmarshal(f.FieldsV1.GetRawBytes(), &set) != nil {
		return false
	}
	_, is := set.Data["f:"+key]
	return is
}
