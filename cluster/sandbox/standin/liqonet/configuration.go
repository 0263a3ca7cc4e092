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
	configured  = "configuration.liqo.io/configured" // the label of versions before 1.2
	networkType = "ipam.liqo.io/network-type"
	cidrsReady  = "NetworkCIDRsConfigured"
)

// cidrs are those of one cluster.
type cidrs struct {
	CIDR struct {
		Pod      []string `json:"pod"`
		External []string `json:"external"`
	} `json:"cidr"`
}

// of returns those of a type, as in the label of the Networks.
func (c *cidrs) of(kind string) *[]string {
	if kind == "pod" {
		return &c.CIDR.Pod
	}
	return &c.CIDR.External
}

// configuration is a Configuration, as far as it is read here.
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

// configurations takes care of each Configuration once.
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
	if c.Labels[remoteID] == "" {
		p.log.sayf("Configuration %s/%s: missing label %s", c.Namespace, c.Name, remoteID)
		return nil
	}
	if c.Spec.Local == nil {
		return p.merge(ctx, configurations, c.Namespace, c.Name, map[string]any{"spec": map[string]any{"local": own(nets)}})
	}
	remote, complete, err := p.remap(ctx, c, nets)
	if err != nil {
		return err
	}
	message := "Waiting for all networks to be ready"
	if complete {
		message = "Configuration remapped"
	}
	p.event(ctx, c.reference(), corev1.EventTypeNormal, "Processing", message)
	if !site.conditions() && complete && c.Labels[configured] != "true" {
		labels := map[string]any{"metadata": map[string]any{"labels": map[string]any{configured: "true"}}}
		if err := p.merge(ctx, configurations, c.Namespace, c.Name, labels); err != nil {
			return err
		}
	}
	now := c.Status
	now.Remote = remote
	if site.conditions() {
		now.Conditions = condition(c, complete, message)
	}
	if reflect.DeepEqual(now, c.Status) {
		return nil
	}
	return p.status(ctx, configurations, c.Namespace, c.Name, now)
}

// remap makes the Networks of a Configuration, deletes those of CIDRs that it
// has no longer, and returns the CIDRs under which the other cluster is seen
// here. They are complete when there is one for each, and some of both types.
func (p *Player) remap(ctx context.Context, c *configuration, nets []network) (*cidrs, bool, error) {
	seen, complete := &cidrs{}, true
	var wanted []string
	for _, kind := range []string{"pod", "external"} {
		asked := *c.Spec.Remote.of(kind)
		complete = complete && len(asked) > 0
		for _, cidr := range asked {
			made := c.network(kind, cidr)
			wanted = append(wanted, made.Name)
			at := slices.IndexFunc(nets, func(n network) bool { return n.Namespace == made.Namespace && n.Name == made.Name })
			switch {
			case at < 0:
				complete = false
				if err := p.apply(ctx, networks, made); err != nil {
					return nil, false, err
				}
			case nets[at].Status.CIDR == "" || nets[at].DeletionTimestamp != nil:
				complete = false
			default:
				*seen.of(kind) = append(*seen.of(kind), nets[at].Status.CIDR)
			}
		}
	}
	for _, n := range nets {
		if owner := metav1.GetControllerOf(&n); owner == nil || owner.UID != c.UID || n.DeletionTimestamp != nil || slices.Contains(wanted, n.Name) {
			continue
		}
		if err := p.dynamic.Resource(networks).Namespace(n.Namespace).Delete(ctx, n.Name, metav1.DeleteOptions{}); err != nil {
			return nil, false, err
		}
	}
	return seen, complete, nil
}

// network is the Network for one CIDR of the other cluster.
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

// condition returns the conditions of a Configuration as they are now.
func condition(c *configuration, complete bool, message string) []metav1.Condition {
	now := metav1.Condition{
		Type: cidrsReady, Status: metav1.ConditionFalse, Reason: "WaitingForNetworks", Message: message,
		ObservedGeneration: c.Generation, LastTransitionTime: metav1.Now().Rfc3339Copy(),
	}
	if complete {
		now.Status, now.Reason = metav1.ConditionTrue, "NetworksReady"
	}
	for _, was := range c.Status.Conditions {
		if was.Type == now.Type && was.Status == now.Status {
			now.LastTransitionTime = was.LastTransitionTime
		}
	}
	return []metav1.Condition{now}
}

// own returns the CIDRs of this cluster.
func own(nets []network) *cidrs {
	here := &cidrs{}
	for _, n := range nets {
		if kind, ok := strings.CutSuffix(n.Labels[networkType], "-cidr"); ok && (kind == "pod" || kind == "external") && n.Status.CIDR != "" {
			*here.of(kind) = append(*here.of(kind), n.Status.CIDR)
		}
	}
	return here
}
