package steps

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster"
)

// LinkLabelPrefix is the prefix of the ownership label on each object that a link has written. The prefix is followed
// by the name of the link. The value is the action.
const LinkLabelPrefix = "carrick/link."

// LinkLabel returns the key of the ownership label of a link.
func LinkLabel(link string) string { return LinkLabelPrefix + link }

// Manager returns the field manager of the current action of this link. If all links had the same field manager, a
// second link that applies an object would remove the fields of the first.
func (e Env) Manager() string { return FieldManager(e.Link, e.Action) }

// OwnedBy returns a selector for the objects of any kind that an action of this link has written. If action is "", it
// selects the objects of all actions.
func (e Env) OwnedBy(action string) cluster.Selector {
	if action == "" {
		return cluster.Selector{Labels: LinkLabel(e.Link)}
	}
	return cluster.Selector{Labels: LinkLabel(e.Link) + "=" + action}
}

// FieldManager returns the field manager of an action of a link.
func FieldManager(link, action string) string { return "carrick." + link + "." + action }

// OwnsKey reports whether a managedFields entry owns a key under data, in a ConfigMap or a Secret.
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
