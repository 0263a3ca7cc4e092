package liqonet

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	cidrType    = "configuration.liqo.io/cidr-type"
	configured  = "configuration.liqo.io/configured" // label that versions before 1.2 set
	networkType = "ipam.liqo.io/network-type"
	cidrsReady  = "NetworkCIDRsConfigured"
)

// cidrs contains the pod CIDRs and external CIDRs of one cluster.
type cidrs struct {
	CIDR struct {
		Pod      []string `json:"pod"`
		External []string `json:"external"`
	} `json:"cidr"`
}

// of returns the CIDRs of the given type. The types are the values of the label cidrType.
func (c *cidrs) of(kind string) *[]string {
	if kind == "pod" {
		return &c.CIDR.Pod
	}
	return &c.CIDR.External
}

// configuration contains the fields of a Configuration that this fake reads.
type configuration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Local  *cidrs `json:"local,omitempty"`
		Remote cidrs  `json:"remote"`
	} `json:"spec"`
	Status struct {
		Remote     *cidrs             `json:"remote,omitempty"`
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status"`
}

// configurations reconciles each Configuration once.
//
// Source: liqotech/liqo v1.2.0, pkg/liqo-controller-manager/networking/external-network/configuration: the controller,
// network.go, label.go and conditions.go. The fields that older versions write are in the same files of v1.1.2.
func (p *Player) configurations(ctx context.Context, site site, here objects) error {
	var faults []error
	for i := range here.configurations {
		if c := &here.configurations[i]; c.DeletionTimestamp == nil {
			faults = append(faults, p.configure(ctx, site, c, here.networks))
		}
	}
	return errors.Join(faults...)
}

func (p *Player) configure(ctx context.Context, site site, c *configuration, nets []network) error {
	if c.Spec.Local == nil {
		local, ok := own(nets)
		if !ok {
			p.log.sayf("Configuration %s/%s: a pod or external CIDR of this cluster is missing", c.Namespace, c.Name)
			return nil
		}
		return p.merge(ctx, configurations, c.Namespace, c.Name, map[string]any{"spec": map[string]any{"local": local}})
	}
	if c.Labels[remoteID] == "" {
		p.log.sayf("Configuration %s/%s: missing label %s", c.Namespace, c.Name, remoteID)
		return nil
	}
	remote, err := p.remap(ctx, c, nets)
	if err != nil {
		return err
	}
	now := c.Status
	now.Remote = remote
	done := remote.complete(&c.Spec.Remote)
	switch {
	case !site.conditions():
		remote.compact()
	case remote.refused():
		p.event(ctx, c.reference(), corev1.EventTypeNormal, "Processing", "Processing configuration")
		return nil
	default:
		now.Conditions = condition(c, done)
	}
	if !reflect.DeepEqual(now, c.Status) {
		if err := p.status(ctx, configurations, c.Namespace, c.Name, now); err != nil {
			return err
		}
	}
	message := "Waiting for all networks to be ready"
	if done {
		message = "Configuration remapped"
	}
	p.event(ctx, c.reference(), corev1.EventTypeNormal, "Processing", message)
	if site.conditions() || !done || c.Labels[configured] == "true" {
		return nil
	}
	labels := map[string]any{"metadata": map[string]any{"labels": map[string]any{configured: "true"}}}
	return p.merge(ctx, configurations, c.Namespace, c.Name, labels)
}

// remap creates a Network for each CIDR in the Configuration, and deletes the Networks of other CIDRs. It returns the
// local CIDRs to which the remote CIDRs are remapped, in the order of the spec. "" means not known yet. While a Network
// is being deleted, all Networks of its type stay unchanged.
func (p *Player) remap(ctx context.Context, c *configuration, nets []network) (*cidrs, error) {
	seen := &cidrs{}
	if c.Status.Remote != nil {
		*seen = *c.Status.Remote
	}
	for _, kind := range []string{"pod", "external"} {
		asked := *c.Spec.Remote.of(kind)
		stale, err := p.stale(ctx, c, kind, nets)
		if err != nil {
			return nil, err
		}
		if stale {
			continue
		}
		given := make([]string, len(asked))
		for i, cidr := range asked {
			made := c.network(kind, cidr)
			if n := find(nets, made.Namespace, made.Name); n != nil {
				given[i] = n.Status.CIDR
				continue
			}
			if err := p.apply(ctx, networks, made); err != nil {
				return nil, err
			}
		}
		*seen.of(kind) = given
	}
	return seen, nil
}

// stale deletes the Configuration's Networks for removed CIDRs. exists reports whether any such Network still exists.
func (p *Player) stale(ctx context.Context, c *configuration, kind string, nets []network) (exists bool, err error) {
	for i := range nets {
		n := &nets[i]
		if owner := metav1.GetControllerOf(n); owner == nil || owner.UID != c.UID || n.Labels[cidrType] != kind {
			continue
		}
		if slices.Contains(*c.Spec.Remote.of(kind), n.Spec.CIDR) && n.Name == c.network(kind, n.Spec.CIDR).Name {
			continue
		}
		exists = true
		if n.DeletionTimestamp != nil {
			continue
		}
		if err := p.dynamic.Resource(networks).Namespace(n.Namespace).Delete(
			ctx, n.Name, metav1.DeleteOptions{},
		); err != nil {
			return true, err
		}
	}
	return exists, nil
}

// complete reports whether every CIDR in asked has been remapped and both types have CIDRs.
func (c *cidrs) complete(asked *cidrs) bool {
	for _, kind := range []string{"pod", "external"} {
		given := *c.of(kind)
		if len(given) == 0 || len(given) != len(*asked.of(kind)) || slices.Contains(given, "") {
			return false
		}
	}
	return true
}

// refused reports whether the API server rejects a status with these CIDRs. Upstream writes "" for a CIDR that is not
// known yet, but the CRD does not allow it. So no status exists until all CIDRs are known.
//
// Source: liqotech/liqo v1.2.0, deployments/liqo/charts/liqo-crds/crds/networking.liqo.io_configurations.yaml (format:
// cidr).
func (c *cidrs) refused() bool {
	return slices.Contains(c.CIDR.Pod, "") || slices.Contains(c.CIDR.External, "")
}

// compact removes the CIDRs that are not known yet.
func (c *cidrs) compact() {
	for _, kind := range []string{"pod", "external"} {
		all := c.of(kind)
		*all = slices.DeleteFunc(*all, func(s string) bool { return s == "" })
	}
}

// network returns the Network for one remote CIDR.
func (c *configuration) network(kind, cidr string) *network {
	yes := true
	n := &network{TypeMeta: metav1.TypeMeta{APIVersion: networks.GroupVersion().String(), Kind: "Network"}}
	n.Name = c.Name + "-" + kind + "-" + strings.NewReplacer(".", "-", "/", "-", ":", "-").Replace(cidr)
	n.Namespace = c.Namespace
	n.Labels = map[string]string{cidrType: kind, remoteID: c.Labels[remoteID]}
	n.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: configurations.GroupVersion().String(), Kind: "Configuration",
		Name: c.Name, UID: c.UID, Controller: &yes, BlockOwnerDeletion: &yes,
	}}
	n.Spec.CIDR = cidr
	return n
}

func (c *configuration) reference() corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: configurations.GroupVersion().String(), Kind: "Configuration",
		Namespace: c.Namespace, Name: c.Name, UID: c.UID,
	}
}

func condition(c *configuration, complete bool) []metav1.Condition {
	now := metav1.Condition{
		Type: cidrsReady, Status: metav1.ConditionFalse, Reason: "WaitingForNetworks",
		Message:            "Waiting for all networks to be ready",
		ObservedGeneration: c.Generation, LastTransitionTime: metav1.Now().Rfc3339Copy(),
	}
	if complete {
		now.Status, now.Reason, now.Message = metav1.ConditionTrue, cidrsReady, "All network CIDRs are configured"
	}
	for _, was := range c.Status.Conditions {
		if was.Type == now.Type && was.Status == now.Status {
			now.LastTransitionTime = was.LastTransitionTime
		}
	}
	return []metav1.Condition{now}
}

// own returns this cluster's pod CIDRs and external CIDR. The bool reports whether all of them are known.
//
// Source: liqotech/liqo v1.2.0, pkg/utils/ipam/networks.go (GetPodCIDRs, GetExternalCIDR).
func own(nets []network) (*cidrs, bool) {
	here := &cidrs{}
	for _, n := range nets {
		if kind, ok := strings.CutSuffix(n.Labels[networkType], "-cidr"); ok && (kind == "pod" || kind == "external") {
			*here.of(kind) = append(*here.of(kind), n.Status.CIDR)
		}
	}
	return here, len(here.CIDR.Pod) > 0 && len(here.CIDR.External) == 1 && !here.refused()
}
