// The OpenAPI description at /spec.json (base_api/misc.py, crc/api.spec.yaml). It contains only the schemas of
// clusters, generated from this package's schemas.

package renkuapi

import "net/http"

const (
	versionNow = "0.80.1" // image tag in renku @ 74c766fe7: helm-chart/renku/values.yaml; its code was not read
	versionOld = "0.30.0" // made-up version for the fault old-renku
)

func (r *registry) version() string {
	if r.old {
		return versionOld
	}
	return versionNow
}

func (r *registry) getVersion(*http.Request) (int, any, error) {
	return http.StatusOK, map[string]any{"version": r.version()}, nil
}

func (r *registry) getSpec(*http.Request) (int, any, error) {
	withID := append(schema{{name: "id", kind: "string", required: true, pattern: ulid}}, r.schema()...)
	return http.StatusOK, map[string]any{
		"openapi": "3.0.2",
		"info":    map[string]any{"title": "Renku Data Services API (stand-in: clusters only)", "version": r.version()},
		"servers": []any{map[string]any{"url": apiPath}},
		"paths":   map[string]any{},
		"components": map[string]any{"schemas": map[string]any{
			"Cluster": r.schema().describe(), "ClusterPatch": r.schema().optional().describe(),
			"ClusterWithId": withID.describe(),
		}},
	}, nil
}

// describe converts the schema to OpenAPI.
func (s schema) describe() map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, f := range s {
		p := map[string]any{"type": f.kind}
		if f.pattern != nil {
			p["pattern"] = f.pattern.String()
		}
		if f.values != nil {
			p["enum"] = f.values
		}
		low, high := "minimum", "maximum"
		if f.kind == "string" {
			low, high = "minLength", "maxLength"
		}
		if f.low > 0 || f.kind == "integer" {
			p[low] = f.low
		}
		if f.high > 0 {
			p[high] = f.high
		}
		properties[f.name] = p
		if f.required {
			required = append(required, f.name)
		}
	}
	all := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		all["required"] = required
	}
	return all
}
