package action

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"maps"
	"slices"
	"strings"

	"carrick/cluster/masked"
)

// onlyCertificates reports whether every value consists only of certificates, which are public.
func onlyCertificates(data map[string]any) bool {
	for _, v := range data {
		text, _ := v.(string)
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil || !isCertificates(raw) {
			return false
		}
	}
	return len(data) > 0
}

// isCertificates reports whether raw consists only of PEM certificates. Any other text could be a key.
func isCertificates(raw []byte) bool {
	var again bytes.Buffer
	for rest := raw; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil || block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
			return false
		}
		_ = pem.Encode(&again, block) // writes to memory never fail
	}
	joined := func(b []byte) string { return strings.Join(strings.Fields(string(b)), "") }
	return again.Len() > 0 && joined(again.Bytes()) == joined(raw)
}

// holdsSecret reports whether v contains one of the secrets at any depth, in plain text or in base64.
func holdsSecret(v any, secrets []string) bool {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			if holdsSecret(k, secrets) || holdsSecret(inner, secrets) {
				return true
			}
		}
	case []any:
		for _, inner := range v {
			if holdsSecret(inner, secrets) {
				return true
			}
		}
	case string:
		for _, s := range secrets {
			if s != "" && (strings.Contains(v, s) || strings.Contains(v, base64.StdEncoding.EncodeToString([]byte(s)))) {
				return true
			}
		}
	}
	return false
}

// openValues returns the non-secret values of a chart and the paths of the secret values.
func openValues(values map[string]any, at string) (open map[string]any, left []string) {
	open = map[string]any{}
	for _, k := range slices.Sorted(maps.Keys(values)) {
		path := strings.TrimPrefix(at+"."+k, ".")
		switch v := values[k].(type) {
		case map[string]any:
			inner, more := openValues(v, path)
			left = append(left, more...)
			if len(inner) > 0 || len(v) == 0 {
				open[k] = inner
			}
		case []any:
			if hasMasked(v) { // a list can't be exported in part
				left = append(left, path)
				continue
			}
			open[k] = v
		case masked.Value:
			left = append(left, path)
		default:
			open[k] = v
		}
	}
	return open, left
}

func hasMasked(v any) bool {
	switch v := v.(type) {
	case masked.Value:
		return true
	case map[string]any:
		for _, inner := range v {
			if hasMasked(inner) {
				return true
			}
		}
	case []any:
		for _, inner := range v {
			if hasMasked(inner) {
				return true
			}
		}
	}
	return false
}
