package steps

import "carrick/cluster"

// LinkLabelPrefix begins the label of each object that a link has written: the name of the link follows, and the value is
// the action.
const LinkLabelPrefix = "carrick/link."

// LinkLabel is the label of what a link has written.
func LinkLabel(link string) string { return LinkLabelPrefix + link }

// Manager is the field manager of the action in hand, of this link. With one for
// all, a second link to an object would prune what the first one wrote.
func (e Env) Manager() string { return FieldManager(e.Link, e.Action) }

// Marked selects what an action of this link has written, of any kind; "" is any
// action.
func (e Env) Marked(action string) cluster.Selector {
	if action == "" {
		return cluster.Selector{Labels: LinkLabel(e.Link)}
	}
	return cluster.Selector{Labels: LinkLabel(e.Link) + "=" + action}
}

// FieldManager is the manager of the fields that an action of a link has written.
func FieldManager(link, action string) string { return "carrick." + link + "." + action }
