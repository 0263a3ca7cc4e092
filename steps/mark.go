package steps

import "carrick/cluster"

const markPrefix = "carrick/link." // + link: the action

func mark(link string) string { return markPrefix + link }

// Manager is the field manager of the action in hand, of this link. With one for
// all, a second link to an object would prune what the first one wrote.
func (e Env) Manager() string { return managerOf(e.Link, e.Action) }

// Marked selects what an action of this link has written, of any kind; "" is any
// action.
func (e Env) Marked(action string) cluster.Selector {
	if action == "" {
		return cluster.Selector{Labels: mark(e.Link)}
	}
	return cluster.Selector{Labels: mark(e.Link) + "=" + action}
}

func managerOf(link, action string) string { return "carrick." + link + "." + action }
