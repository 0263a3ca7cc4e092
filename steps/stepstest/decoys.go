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

// decoyKinds are the kinds by whose names and labels guides discover what runs in a cluster.
const decoyKinds = "deployments,daemonsets,configmaps,services,secrets"

// The values that replace a host, an address, a version or the namespace in a decoy.
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

// kept are keys whose values must stay the same, because a server would otherwise reject the object.
var kept = map[string]bool{
	"fieldPath": true, "resource": true, "mountPath": true, "name": true, "key": true, "type": true, "apiVersion": true,
}

// forge returns a value of an object with other hosts, addresses, versions and another namespace.
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

// decoys copies the objects of a cluster into the tenant's namespace, with their names, labels and annotations, but
// with the tenant's own values. It returns the copies that did not exist before, named as by plants.
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

// deceived plants decoys on each side, and fails the test if they change what the guide discovers. It returns the
// decoys in the form of shown.
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

// known returns what the guide discovers about a site: the answers to all questions, including those from an existing
// set-up, and the facts that it shares with the other side.
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
