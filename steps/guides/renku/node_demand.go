package renku

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"carrick/steps"
)

// demand describes what sessions require of a node. The requirements come from the answers and from
// the settings that Renku adds to every session on any cluster (SwissDataScienceCenter/renku
// helm-chart/renku/values.yaml, notebooks.sessionAffinity and sessionTolerations).
type demand struct {
	labels    []string // key=value
	keys      []string // label keys; any value matches
	tolerated []string // taint keys; "*" matches all taints
	arch      string
	affinity  *corev1.Affinity // from notebooks.sessionAffinity; nil: not set or unknown
}

// demanded returns the demand of this link's sessions. It ignores Renku settings that do not exist
// or cannot be read, because the check node-purpose reports them.
func demanded(ctx context.Context, e steps.Env) (demand, error) {
	d := demand{
		labels: e.Answers.List("nodes.labels"), tolerated: slices.Clone(e.Answers.List("nodes.tolerations")),
		arch: e.Answers.Text("nodes.arch"),
	}
	var err error
	if d.affinity, err = renkuAffinity(e); err != nil && !mayBeUnread(err) {
		return d, err
	}
	more, err := e.Peer.List("session-tolerations")
	if err != nil && !mayBeUnread(err) {
		return d, err
	}
	d.tolerated = append(d.tolerated, more...)
	classes, err := poolClasses(e)
	for _, c := range classes {
		d.tolerated = append(d.tolerated, c.Tolerations...)
	}
	return d, err
}

func mayBeUnread(err error) bool {
	return steps.IsAbsent(err) || apierrors.IsForbidden(err)
}

// renkuAffinity returns Renku's notebooks.sessionAffinity. It returns nil if the affinity requires
// no node label.
func renkuAffinity(e steps.Env) (*corev1.Affinity, error) {
	v, err := e.Peer.Value("session-affinity")
	if err != nil {
		return nil, err
	}
	var out corev1.Affinity
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Renku's notebooks.sessionAffinity: %w", err)
	}
	if required(&out) == nil {
		return nil, nil
	}
	return &out, nil
}

func required(a *corev1.Affinity) *corev1.NodeSelector {
	if a == nil || a.NodeAffinity == nil {
		return nil
	}
	return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// affinityWords describes the required terms of an affinity, such as "renku.io/node-purpose In
// user".
func affinityWords(a *corev1.Affinity) string {
	var terms []string
	for _, t := range required(a).NodeSelectorTerms {
		var parts []string
		for _, x := range slices.Concat(t.MatchExpressions, t.MatchFields) {
			parts = append(parts, strings.TrimSpace(x.Key+" "+string(x.Operator)+" "+strings.Join(x.Values, ",")))
		}
		terms = append(terms, strings.Join(parts, " and "))
	}
	return strings.Join(terms, ", or ")
}

// unfit returns why sessions cannot run on n. It returns "" if they can.
func (d demand) unfit(n *corev1.Node) string {
	ready := false
	for _, c := range n.Status.Conditions {
		ready = ready || (c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue)
	}
	switch {
	case !ready:
		return "is not ready"
	case n.Spec.Unschedulable:
		return "is cordoned"
	case n.Labels[corev1.LabelArchStable] != d.arch:
		return "is " + n.Labels[corev1.LabelArchStable] + ", not " + d.arch
	}
	for _, l := range d.labels {
		k, v, _ := strings.Cut(l, "=")
		if got, ok := n.Labels[k]; !ok || got != v {
			return "does not have the label " + l
		}
	}
	for _, k := range d.keys {
		if _, ok := n.Labels[k]; !ok {
			return "has no label " + k
		}
	}
	if !d.matchesAffinity(n) {
		return "does not match Renku's notebooks.sessionAffinity (" + affinityWords(d.affinity) + ")"
	}
	for _, t := range n.Spec.Taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !slices.Contains(d.tolerated, t.Key) &&
			!slices.Contains(d.tolerated, "*") {
			return "has the taint " + t.Key + ", which sessions do not tolerate"
		}
	}
	return ""
}

// matchesAffinity reports whether n matches the node affinity in Renku's settings. It returns true
// if Renku has no affinity. Like the scheduler, it returns false if the affinity is invalid.
func (d demand) matchesAffinity(n *corev1.Node) bool {
	if d.affinity == nil {
		return true
	}
	ok, err := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: corev1.PodSpec{Affinity: d.affinity}}).Match(n)
	return ok && err == nil
}

// poolClass contains the fields of a resource class that restrict its nodes (renku-data-services
// components/renku_data_services/crc/api.spec.yaml).
type poolClass struct {
	Name        string   `json:"name"`
	CPU         float64  `json:"cpu"`
	Memory      float64  `json:"memory"` // GiB
	GPU         int64    `json:"gpu"`
	Tolerations []string `json:"tolerations"`
	Affinities  []struct {
		Key      string `json:"key"`
		Required bool   `json:"required_during_scheduling"`
	} `json:"node_affinities"`
}

// poolClasses returns the classes in pool.spec. It returns none if pool.spec is empty or invalid.
// The check pool-rules reports an invalid pool.spec.
func poolClasses(e steps.Env) ([]poolClass, error) {
	d, err := thePool(e)
	if steps.IsAbsent(err) {
		return nil, nil
	}
	if err != nil || len(d.faults) > 0 {
		return nil, err
	}
	var out []poolClass
	b, err := json.Marshal(d.payload["classes"])
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	return out, err
}
