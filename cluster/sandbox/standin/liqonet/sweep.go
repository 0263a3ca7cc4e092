package liqonet

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// swept lists the kinds that gateway resources and Configurations own.
var swept = []resource{
	deployments, services, {Version: "v1", Resource: "serviceaccounts"}, secrets, connections, networks,
}

// sweep deletes objects whose owners no longer exist. The garbage collector would also delete them, but it needs up to
// 30 seconds to discover kinds that were added later.
func (p *Player) sweep(ctx context.Context, here objects) error {
	now := map[types.UID]bool{}
	for i := range here.configurations {
		now[here.configurations[i].UID] = true
	}
	for i := range here.ends {
		now[here.ends[i].UID] = true
	}
	var faults []error
	for uid := range p.owners {
		if now[uid] {
			continue
		}
		if err := p.orphans(ctx, uid); err != nil {
			faults = append(faults, err)
			now[uid] = true // retry in the next pass
		}
		delete(p.made, uid)
	}
	p.owners = now
	return errors.Join(faults...)
}

// orphans deletes the objects that owner owned.
func (p *Player) orphans(ctx context.Context, owner types.UID) error {
	background := metav1.DeletePropagationBackground
	var faults []error
	for _, kind := range swept {
		found, err := p.dynamic.Resource(kind).List(ctx, metav1.ListOptions{LabelSelector: remoteID})
		if err != nil {
			return err
		}
		for _, o := range found.Items {
			if refs := o.GetOwnerReferences(); len(refs) == 0 || refs[0].UID != owner || o.GetDeletionTimestamp() != nil {
				continue
			}
			err := p.dynamic.Resource(kind).Namespace(o.GetNamespace()).Delete(
				ctx, o.GetName(), metav1.DeleteOptions{PropagationPolicy: &background},
			)
			if !apierrors.IsNotFound(err) {
				faults = append(faults, err)
			}
		}
	}
	return errors.Join(faults...)
}
