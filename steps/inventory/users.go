package inventory

import (
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"carrick/steps"
	"carrick/steps/linkfile"
)

// UsersOf returns the other links that use an object, with their actions. A link uses an object if the object has the
// link's ownership label and the link's inventory contains the object. claims are links with a label on the object but
// without an inventory on the cluster. Either an earlier version wrote the label, or another user forged it.
func UsersOf(
	ctx context.Context, env steps.Env, o *metav1.PartialObjectMetadata,
) (users map[string]string, claims []string, err error) {
	marks := OtherLinks(o.Labels, env.Link)
	users = map[string]string{}
	for _, link := range slices.Sorted(maps.Keys(marks)) {
		if linkfile.CheckName(link) != nil {
			continue
		}
		inv, err := Readable(ctx, EnvOf(env, link, marks[link]))
		if err != nil {
			return nil, nil, err
		}
		if inv.UID == "" {
			claims = append(claims, link)
		}
		if slices.ContainsFunc(inv.Actions[marks[link]], func(e steps.Entry) bool {
			return e.UID == o.UID || (e.UID == "" && e.Namespace == o.Namespace && e.Name == o.Name)
		}) {
			users[link] = marks[link]
		}
	}
	return users, claims, nil
}

// Released removes an object that this link created from the inventory. It must not be called while the object still
// contains anything from the link.
func Released(ctx context.Context, e steps.Env, uid types.UID) error {
	inv, err := Of(ctx, e)
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(
		slices.Clone(inv.Actions[e.Action]), func(in steps.Entry) bool { return in.Created && in.UID == uid },
	)
	if len(left) == len(inv.Actions[e.Action]) || inv.UID == "" {
		return nil
	}
	inv.Actions[e.Action] = left
	return inv.Write(ctx, e, nil, e.Action)
}
