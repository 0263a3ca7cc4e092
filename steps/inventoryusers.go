package steps

import (
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// usersOf are the other links that use an object, with their actions: those whose marks it has and whose inventories have
// it. claims are links whose marks it has and that have no inventory on the cluster: an earlier version's, or forged.
func usersOf(ctx context.Context, env Env, o *metav1.PartialObjectMetadata) (users map[string]string, claims []string, err error) {
	marks := otherLinks(o.Labels, env.Link)
	users = map[string]string{}
	for _, link := range slices.Sorted(maps.Keys(marks)) {
		if CheckLinkName(link) != nil {
			continue
		}
		inv, err := readableInventory(ctx, envOf(env, link, marks[link]))
		if err != nil {
			return nil, nil, err
		}
		if inv.uid == "" {
			claims = append(claims, link)
		}
		if slices.ContainsFunc(inv.actions[marks[link]], func(e entry) bool {
			return e.UID == o.UID || (e.UID == "" && e.Namespace == o.Namespace && e.Name == o.Name)
		}) {
			users[link] = marks[link]
		}
	}
	return users, claims, nil
}

// Released drops an object that this link created from the inventory, once nothing of the link's is in it any more.
func Released(ctx context.Context, e Env, uid types.UID) error {
	inv, err := inventoryIn(ctx, e)
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(inv.actions[e.Action]), func(in entry) bool { return in.Created && in.UID == uid })
	if len(left) == len(inv.actions[e.Action]) || inv.uid == "" {
		return nil
	}
	inv.actions[e.Action] = left
	return inv.write(ctx, e, nil, e.Action)
}
