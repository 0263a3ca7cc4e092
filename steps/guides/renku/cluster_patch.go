package renku

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"carrick/cluster/clean"
)

// difference describes a field whose value in Renku differs from the planned value.
type difference struct {
	field      string
	want, have any // nil: not set
}

func (d difference) String() string {
	want, _ := d.want.(map[string]any)
	have, _ := d.have.(map[string]any)
	if want == nil && have == nil {
		return fmt.Sprintf("%s is %s and should be %s", d.field, shownJSON(d.have), shownJSON(d.want))
	}
	all, out := map[string]any{}, []string{}
	maps.Copy(all, want)
	maps.Copy(all, have)
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if !reflect.DeepEqual(want[k], have[k]) {
			out = append(out, difference{k, want[k], have[k]}.String())
		}
	}
	return "in " + d.field + " " + strings.Join(out, ", ")
}

func shownJSON(v any) string {
	if v == nil {
		return "not set"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return clean.Text(string(b))
}

// differences returns the fields that differ between want and have. It treats an unset field as
// equal to "", false or an empty map, because Renku omits null fields. If the protocol in want is
// http, it ignores the TLS fields.
func differences(want, have map[string]any) []difference {
	var out []difference
	for _, f := range clusterFields {
		if (f == fieldTLS || f == fieldDefault) && textOf(want, fieldProtocol) == "http" {
			continue
		}
		if w, h := unset(want[f]), unset(have[f]); !reflect.DeepEqual(w, h) {
			out = append(out, difference{f, w, h})
		}
	}
	return out
}

func unset(v any) any {
	m, isMap := v.(map[string]any)
	if v == "" || v == false || (isMap && len(m) == 0) {
		return nil
	}
	return v
}

// patches returns the bodies of the PATCH requests that change the cluster from have to want, in
// order. carrick does not use PUT, because PUT drops the default-certificate flag, as POST does. If
// PATCH cannot remove a field, patches returns an error with the field's name.
func patches(want, have map[string]any) ([]map[string]any, error) {
	diffs := differences(want, have)
	if len(diffs) == 0 {
		return nil, nil
	}
	patch := map[string]any{}
	for _, d := range diffs {
		switch {
		case d.want != nil || d.field == "session_path" || d.field == "session_storage_class" || d.field == fieldTLS:
			patch[d.field] = want[d.field]
			if want[d.field] == nil {
				patch[d.field] = "" // Renku reads "" as "not set"
			}
		case d.field == fieldNotes:
			patch[d.field] = map[string]any{}
		case d.field == fieldDefault:
			patch[d.field] = false
		default:
			return nil, fmt.Errorf(
				"%s cannot be removed from a cluster in Renku once it is set (now %s). Set another value, or delete the cluster "+
					"in Renku and register it again",
				d.field, shownJSON(d.have),
			)
		}
	}
	_, tls := patch[fieldTLS]
	_, flag := patch[fieldDefault]
	if !tls && !flag {
		return []map[string]any{patch}, nil
	}
	// A PATCH that changes only one of these two fields violates a database constraint.
	patch[fieldTLS], patch[fieldDefault] = textOf(want, fieldTLS), want[fieldDefault] == true
	if had, _ := have[fieldDefault].(bool); !had || patch[fieldDefault] == true {
		return []map[string]any{patch}, nil
	}
	// With https, Renku also validates the stored flag, so a Secret cannot replace the default
	// certificate. Change the certificate while the protocol is http.
	certificate := map[string]any{fieldTLS: patch[fieldTLS], fieldDefault: false}
	delete(patch, fieldTLS)
	delete(patch, fieldDefault)
	patch[fieldProtocol] = want[fieldProtocol]
	out := []map[string]any{{fieldProtocol: "http"}, certificate, patch}
	if textOf(have, fieldProtocol) == "http" {
		out = out[1:]
	}
	return out, nil
}
