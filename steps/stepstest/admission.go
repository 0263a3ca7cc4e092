package stepstest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"carrick/steps"
)

// admission is a rule for dry runs on the fake API server. It simulates an admission plugin, a policy or a webhook.
type admission struct {
	Resource  string         `json:"resource"`
	Namespace string         `json:"namespace"` // "" matches any namespace
	Match     map[string]any `json:"match"`     // fields that the object must have; null means must not have
	Patch     map[string]any `json:"patch"`     // a merge patch
	Warn      string         `json:"warn"`
	Deny      string         `json:"deny"`
	Fault     string         `json:"fault"` // like Deny, for a webhook that does not answer
}

// admissions reads the admission sections. A state's section replaces the section of its base.
func (s *state) admissions() error {
	s.admission = map[steps.Side][]admission{}
	if s.base != nil {
		maps.Copy(s.admission, s.base.admission)
	}
	for _, side := range steps.Sides {
		text, given := s.section("admission/" + string(side))
		if !given {
			continue
		}
		var rules []admission
		if err := yaml.UnmarshalStrict([]byte(text), &rules); err != nil {
			return err
		}
		s.admission[side] = rules
	}
	return nil
}

// admit applies every matching rule to an object, in order. If a rule rejects the object, admit answers the request and
// returns false.
func admit(
	w http.ResponseWriter, rules []admission, resource, namespace, name string, object map[string]any,
) (map[string]any, bool) {
	for _, a := range rules {
		if a.Resource != resource || (a.Namespace != "" && a.Namespace != namespace) || !matches(object, a.Match) {
			continue
		}
		if a.Warn != "" {
			w.Header().Add("Warning", fmt.Sprintf("299 - %q", a.Warn))
		}
		switch {
		case a.Deny != "":
			fail(w, 403, metav1.StatusReasonForbidden, fmt.Sprintf("%s %q is forbidden: %s", resource, name, a.Deny))
			return nil, false
		case a.Fault != "":
			fail(w, 500, metav1.StatusReasonInternalError, "Internal error occurred: failed calling webhook "+a.Fault)
			return nil, false
		case a.Patch != nil:
			var err error
			if object, err = merged(object, a.Patch); err != nil {
				fail(w, 400, metav1.StatusReasonBadRequest, err.Error())
				return nil, false
			}
		}
	}
	return object, true
}

// matches reports whether an object has the given fields. A map needs to match only in the given keys. All other values
// must be equal.
func matches(have, want any) bool {
	fields, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(have, want)
	}
	of, _ := have.(map[string]any)
	for key, v := range fields {
		if !matches(of[key], v) {
			return false
		}
	}
	return true
}

func merged(object, patch map[string]any) (map[string]any, error) {
	old, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	change, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	raw, err := jsonpatch.MergePatch(old, change)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, json.Unmarshal(raw, &out)
}
