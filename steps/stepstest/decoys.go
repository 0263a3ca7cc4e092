package stepstest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/engine"
)

// Guides discover what runs in a cluster by the names and labels of these kinds.
const decoyKinds = "deployments,daemonsets,configmaps,services,secrets"

// These values replace hosts, addresses and other values in a decoy.
const (
	forgedHost    = "forged.example.org"
	forgedAddress = "203.0.113.66"
	forgedVersion = "99.98.97"
)

func forged(text string) bool {
	return strings.Contains(text, forgedHost) || strings.Contains(text, forgedAddress) ||
		strings.Contains(text, forgedVersion)
}

var (
	addressText = regexp.MustCompile(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b`)
	versionText = regexp.MustCompile(`\b\d+\.\d+\.\d+\b`)
	hostText    = regexp.MustCompile(`\b[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z]{2,}\b`)
)

// kept lists keys whose values must not change, because a server would otherwise reject the object.
var kept = map[string]bool{
	"fieldPath": true, "resource": true, "mountPath": true, "name": true, "key": true, "type": true, "apiVersion": true,
}

// forge returns a copy of v with other hosts, addresses and versions, and in the given namespace.
func forge(v any, namespace string) any {
	switch v := v.(type) {
	case string:
		v = versionText.ReplaceAllString(
			addressText.ReplaceAllString(hostText.ReplaceAllString(v, forgedHost), forgedAddress), forgedVersion,
		)
		return regexp.MustCompile(`\b`+regexp.QuoteMeta(namespace)+`\b`).ReplaceAllString(v, tenantSpace)
	case []any:
		for i := range v {
			v[i] = forge(v[i], namespace)
		}
	case map[string]any:
		for key, x := range v {
			if !kept[key] && !strings.HasSuffix(key, "abels") && !strings.HasSuffix(key, "elector") {
				v[key] = forge(x, namespace)
			}
		}
	}
	return v
}

// decoys copies the objects of a cluster into the tenant's namespace. The copies keep their names, labels and
// annotations, but have the tenant's own values. decoys returns the new copies, named as plants names objects.
func (s *stage) decoys(t *testing.T, side steps.Side) (planted []string) {
	t.Helper()
	var list struct{ Items []unstructured.Unstructured }
	text := s.box.Run(t, string(side), "", "get", decoyKinds, "--all-namespaces", "-o", "json")
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	name := func(o *unstructured.Unstructured) string { return o.GetKind() + " " + o.GetName() }
	for i := range list.Items {
		if o := &list.Items[i]; o.GetNamespace() == tenantSpace {
			have[name(o)] = true
		}
	}
	for i := range list.Items {
		o := &list.Items[i]
		kind, _, _ := unstructured.NestedString(o.Object, "type")
		if have[name(o)] || o.GetName() == "kube-root-ca.crt" || kind == "kubernetes.io/service-account-token" {
			continue
		}
		have[name(o)] = true
		from := o.GetNamespace()
		for _, field := range []string{
			"uid", "resourceVersion", "creationTimestamp", "managedFields", "ownerReferences", "finalizers", "generation",
			"deletionTimestamp",
		} {
			unstructured.RemoveNestedField(o.Object, "metadata", field)
		}
		for _, field := range []string{
			"status", "immutable", "spec.clusterIP", "spec.clusterIPs", "spec.healthCheckNodePort", "spec.loadBalancerIP",
		} {
			unstructured.RemoveNestedField(o.Object, strings.Split(field, ".")...)
		}
		if ports, ok, _ := unstructured.NestedSlice(o.Object, "spec", "ports"); ok {
			for _, p := range ports {
				delete(p.(map[string]any), "nodePort")
			}
			_ = unstructured.SetNestedSlice(o.Object, ports, "spec", "ports")
		}
		o.SetNamespace(tenantSpace)
		for _, part := range []string{"spec", "data"} {
			if v, ok := o.Object[part]; ok && o.GetKind() != "Secret" {
				o.Object[part] = forge(v, from)
			}
		}
		body, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		s.box.Run(t, string(side), string(body), "create", "-f", "-")
		planted = append(planted, name(o))
	}
	return planted
}

// deceived plants decoys on each side. It fails the test if the decoys change what the guide discovers. It returns the
// content of the decoys (see shown) by name.
func (s *stage) deceived(t *testing.T, when string) map[string]string {
	t.Helper()
	adopts := when == "set-up"
	knew, planted := s.known(t, adopts), map[string]string{}
	for _, side := range clusters(s.Guide) {
		for _, key := range s.decoys(t, side) {
			kind, name, _ := strings.Cut(key, " ")
			planted[string(side)+" "+key] = s.shown(t, side, kind, tenantSpace, name)
		}
	}
	d := cmp.Diff(knew, s.known(t, adopts))
	if d != "" {
		t.Errorf("objects of a tenant change the facts of the %s (-before +after):\n%s", when, d)
	}
	cases.Note(t, "trust", t.Name()+"/decoys "+when, d == "")
	return planted
}

// known returns what the guide discovers about a site. This includes the answers to all questions, those from an
// existing setup, and the facts that it shares with the other side.
func (s *stage) known(t *testing.T, adopts bool) map[string]string {
	t.Helper()
	out := map[string]string{}
	given := map[string]any{}
	for _, key := range s.Asked {
		given[key] = s.answers[key]
	}
	session := Open(t, s.box, s.Guide, s.Assets, proofLink, given)
	defer session.Close()
	for i := range s.Guide.Steps {
		for _, a := range session.Answers(t.Context(), &s.Guide.Steps[i]) {
			out["answer "+a.Question.Key] = fmt.Sprintf("%v", a.Value)
		}
	}
	for _, side := range session.Here() {
		h, err := session.Handover(t.Context(), side, engine.UsualGood)
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range h.File.Facts {
			out[string(side)+" fact "+name] = fmt.Sprintf("%v", v)
		}
		for name, v := range h.File.Absent {
			out[string(side)+" absent "+name] = v
		}
		for name, v := range h.File.Unread {
			out[string(side)+" unread "+name] = v
		}
	}
	if adopts {
		found, err := session.Adopt(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range found {
			out["adopted "+a.Question.Key] = fmt.Sprintf("%v, %s", a.Value, a.Why)
		}
	}
	return out
}
