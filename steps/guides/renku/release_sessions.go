package renku

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/masked"
	"carrick/steps"
)

// customCAs returns the certificates in the Secrets of global.certificates.customCAs, by Secret
// name and key. If the release cannot be read, it uses the Secrets that sessions mount. The fact is
// not secret, because it contains only certificates.
func customCAs(ctx context.Context, e steps.Env) (any, error) {
	names, err := customCANames(ctx, e)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, name := range names {
		if out[name], err = certificatesOf(ctx, e, renkuNamespace(e), name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func customCANames(ctx context.Context, e steps.Env) ([]string, error) {
	const path = "global.certificates.customCAs"
	r, err := valued(ctx, e)
	if unread := (*steps.AbsentError)(nil); errors.As(err, &unread) {
		names, err := sessionCAs(ctx, e)
		if list, ok := names.([]string); err == nil && ok && len(list) > 0 {
			return list, nil
		}
		return nil, unread
	}
	if err != nil {
		return nil, err
	}
	v, _ := r.Value(path)
	names := secretNames(v)
	if len(names) == 0 {
		return nil, steps.Absent("Renku's Helm value %s names no Secret", path)
	}
	return names, nil
}

// secretNames returns the distinct names in v, a list of maps {secret: NAME}.
func secretNames(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, item := range list {
		m, _ := item.(map[string]any)
		if name, _ := m["secret"].(string); name != "" && !slices.Contains(out, name) {
			out = append(out, clean.Text(name))
		}
	}
	return out
}

// certificatesOf returns the certificates in a Secret as PEM, by key. It omits keys without
// certificates and keys with other PEM blocks.
func certificatesOf(ctx context.Context, e steps.Env, namespace, name string) (map[string]any, error) {
	s, err := e.Cluster.Secret(ctx, namespace, name, cluster.EveryKey)
	if apierrors.IsNotFound(err) {
		return nil, steps.Absent("Secret %s/%s, which Renku names for CA certificates, does not exist", namespace, name)
	}
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for key, v := range s.Data {
		if text := onlyCertificates(v); text != "" {
			out[key] = text
		}
	}
	if len(out) == 0 {
		return nil, steps.Absent("Secret %s/%s contains no certificate", namespace, name)
	}
	return out, nil
}

// onlyCertificates returns the certificates in v as PEM, without other text. It returns "" if v
// contains no certificate or a PEM block of another type.
func onlyCertificates(v masked.Value) string {
	var out []byte
	rest := []byte(v.Reveal())
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return string(out)
		}
		if block.Type != "CERTIFICATE" {
			return ""
		}
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
	}
}

// renkuCA returns all certificates from customCAs as one PEM string. TLS clients trust these CAs in
// addition to the system's roots.
func renkuCA(ctx context.Context, e steps.Env) (any, error) {
	v, err := customCAs(ctx, e)
	if err != nil {
		return nil, err
	}
	var out []string
	secrets := v.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		keys := secrets[name].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			out = append(out, strings.TrimSpace(keys[key].(string)))
		}
	}
	return strings.Join(out, "\n") + "\n", nil
}

// Keys of the Secret RELEASE-notebooks, which configures every session on any cluster. The first
// three values are YAML. Each of the first two keys exists only if its Helm value is set
// (SwissDataScienceCenter/renku helm-chart/renku/templates/data-service/session-env-secret.yaml;
// renku-data-services components/renku_data_services/notebooks/config/dynamic.py).
const (
	affinityKey    = "NB_SESSIONS__AFFINITY"
	tolerationsKey = "NB_SESSIONS__TOLERATIONS"
	casKey         = "NB_SESSIONS__CA_CERTS__SECRETS"
	dataServiceKey = "NB_DATA_SERVICE_URL"
)

// notebooksValue returns a value of the Secret RELEASE-notebooks. The bool reports whether the key
// exists.
func notebooksValue(ctx context.Context, e steps.Env, key string) (string, bool, error) {
	release, err := releaseName(ctx, e)
	if err != nil {
		return "", false, err
	}
	ns, name := renkuNamespace(e), release+"-notebooks"
	s, err := e.Cluster.Secret(ctx, ns, name, key)
	if apierrors.IsNotFound(err) {
		return "", false, steps.Absent("Secret %s/%s does not exist", ns, name)
	}
	if err != nil {
		return "", false, err
	}
	v, ok := s.Data[key]
	return v.Reveal(), ok, nil
}

// notebooksYAML decodes a YAML value of the Secret RELEASE-notebooks into out. If the key does not
// exist, out stays unchanged. Errors do not contain the value.
func notebooksYAML(ctx context.Context, e steps.Env, key string, out any) error {
	text, _, err := notebooksValue(ctx, e, key)
	if err != nil {
		return err
	}
	if yaml.Unmarshal([]byte(text), out) != nil {
		return fmt.Errorf("key %s of Renku's Secret RELEASE-notebooks is not YAML of the expected type", key)
	}
	return nil
}

// sessionAffinity returns the affinity of sessions as a map in the format of a core/v1 Affinity.
// The map is empty if sessions have no affinity.
func sessionAffinity(ctx context.Context, e steps.Env) (any, error) {
	var out map[string]any
	if err := notebooksYAML(ctx, e, affinityKey, &out); err != nil {
		return nil, err
	}
	if out == nil {
		out = map[string]any{}
	}
	return out, nil
}

// sessionTolerations returns the keys of the taints that every session tolerates. "*" means all
// taints.
func sessionTolerations(ctx context.Context, e steps.Env) (any, error) {
	var list []corev1.Toleration
	if err := notebooksYAML(ctx, e, tolerationsKey, &list); err != nil {
		return nil, err
	}
	out := []string{}
	for _, t := range list {
		key := clean.Text(t.Key)
		if key == "" {
			key = "*"
		}
		if !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	return out, nil
}

// sessionCAs returns the names of the CA Secrets that every session mounts. Each Secret must exist
// in the session's namespace.
func sessionCAs(ctx context.Context, e steps.Env) (any, error) {
	var list []any
	if err := notebooksYAML(ctx, e, casKey, &list); err != nil {
		return nil, err
	}
	names := secretNames(list)
	if names == nil {
		names = []string{}
	}
	return names, nil
}
