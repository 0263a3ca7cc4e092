package renku

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"carrick/steps"
)

// nameMin and nameMax limit the length of names in Renku. The API requires 5 characters, and the
// database columns have 40 (renku-data-services components/renku_data_services/crc/api.spec.yaml,
// crc/orm.py).
const nameMin, nameMax = 5, 40

var (
	ulid           = regexp.MustCompile(`^[0-7][0-9A-HJKMNP-TV-Z]{25}$`)
	accountPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*[a-z0-9]$`)
)

func checkClusterName(v string) error { return checkLength("a cluster", v) }

func checkLength(what, v string) error {
	if n := utf8.RuneCountInString(v); n < nameMin || n > nameMax {
		return fmt.Errorf(
			"%q has %d characters, but the name of %s in Renku must have %d to %d", v, n, what, nameMin, nameMax,
		)
	}
	return nil
}

const (
	fieldProtocol = "session_protocol"
	fieldTLS      = "session_tls_secret_name"
	fieldDefault  = "session_ingress_use_default_cluster_tls_cert"
	fieldNotes    = "session_ingress_annotations"
)

var clusterFields = []string{
	"name", "config_name", fieldProtocol, "session_host", "session_port", "session_path", fieldNotes,
	"session_ingress_class_name", "session_storage_class", fieldTLS, fieldDefault, "service_account_name",
}

// clusterPayload returns the body of POST /clusters for this link's cluster.
func clusterPayload(e steps.Env) (map[string]any, error) {
	notes, err := remoteFacts(e).Map("session-annotations")
	if err != nil {
		return nil, err
	}
	text := e.Answers.Text
	out := map[string]any{
		"name": text("cluster.name"), "config_name": text("cluster.config-name"),
		fieldProtocol: text("sessions.protocol"), "session_host": text("sessions.host"),
		"session_port": e.Answers.Int("sessions.port"), "session_path": text("sessions.path"), fieldNotes: notes,
	}
	for key, v := range map[string]string{
		"session_ingress_class_name": text("sessions.ingress-class"),
		"session_storage_class":      text("sessions.storage-class"),
		"service_account_name":       text("sessions.service-account"),
	} {
		if v != "" {
			out[key] = v
		}
	}
	if text("sessions.protocol") == "https" {
		out[fieldTLS], out[fieldDefault] = text("sessions.tls-secret"), text("sessions.tls-secret") == ""
	}
	return plainJSON(out), nil
}

// plainJSON returns v as encoding/json would decode it, with float64 numbers and []any lists.
func plainJSON(v map[string]any) map[string]any {
	var out map[string]any
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		panic(err) // v contains only types that JSON can encode
	}
	return out
}

// clusterProblems returns the rules that the body of POST /clusters violates. Renku's API, Renku's
// database or Kubernetes enforces these rules (renku-data-services:
// components/renku_data_services/crc/api.spec.yaml, crc/core.py, crc/orm.py).
func clusterProblems(p map[string]any) []string {
	var out []string
	add := func(err error) {
		if err != nil {
			out = append(out, err.Error())
		}
	}
	add(checkClusterName(textOf(p, "name")))
	add(checkConfigName(textOf(p, "config_name")))
	protocol := textOf(p, fieldProtocol)
	if protocol != "http" && protocol != "https" {
		out = append(out, fmt.Sprintf("session_protocol is %q, not http or https", protocol))
	}
	if host := textOf(p, "session_host"); host == "" {
		out = append(out, "sessions.host is not set")
	} else {
		add(checkSessionHost(host))
	}
	if path := textOf(p, "session_path"); path != "" {
		add(checkSessionPath(path))
	}
	if port, ok := p["session_port"].(float64); !ok || port < 1 || port > 65535 || port != float64(int(port)) {
		out = append(out, fmt.Sprintf("session_port is %v, not a number from 1 to 65535", p["session_port"]))
	}
	notes, ok := p[fieldNotes].(map[string]any)
	if !ok {
		out = append(out, fmt.Sprintf("%s is not a map of strings", fieldNotes))
	}
	for _, bad := range notText(notes) {
		out = append(out, "an annotation is not a string: "+bad)
	}
	for _, key := range []string{"session_ingress_class_name", "session_storage_class", fieldTLS} {
		if n := utf8.RuneCountInString(textOf(p, key)); n > 256 {
			out = append(out, fmt.Sprintf("%s has %d characters, but at most 256 are allowed", key, n))
		}
	}
	if v := textOf(p, "service_account_name"); v != "" && (len(v) > 63 || !accountPattern.MatchString(v)) {
		out = append(
			out, fmt.Sprintf("service_account_name %q is invalid: Renku accepts 2 to 63 lower-case letters, digits and -", v),
		)
	}
	if usesDefault, _ := p[fieldDefault].(bool); protocol == "https" && usesDefault == (textOf(p, fieldTLS) != "") {
		out = append(
			out, "https requires exactly one of a TLS Secret and the controller's default certificate",
		)
	}
	for key := range p {
		if !slices.Contains(clusterFields, key) {
			out = append(out, fmt.Sprintf("Renku has no field %q", key))
		}
	}
	return out
}

// jsonLines returns v as indented JSON, with mark as a prefix of each line.
func jsonLines(mark string, v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return mark + err.Error() + "\n"
	}
	return mark + strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\n", "\n"+mark) + "\n"
}

func changedLines(diffs []difference) string {
	var b strings.Builder
	for _, d := range diffs {
		if d.have != nil {
			b.WriteString(jsonLines("-", map[string]any{d.field: d.have}))
		}
		if d.want != nil {
			b.WriteString(jsonLines("+", map[string]any{d.field: d.want}))
		}
	}
	return b.String()
}
