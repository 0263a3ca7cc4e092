package certs

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/certificate"
	"carrick/cluster/masked"
	"carrick/cluster/permission"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

// Own is a CA that carrick creates, together with the certificate that it issues to a server. Both are stored in
// Secrets of one namespace.
type Own struct {
	Namespace   func(steps.Env) string
	CA, Leaf    string                   // names of the Secrets
	Name        func(steps.Env) string   // name of the CA
	Hosts       func(steps.Env) []string // host names and addresses of the server
	Days, Years func(steps.Env) int      // validity of the certificate and of the CA
}

// Authority returns the Doer that creates the CA once. file is the asset with the CA's Secret, without its data.
func (o Own) Authority(file string) action.Mint {
	return action.Mint{
		File: file, Keys: []string{"tls.crt", "tls.key"},
		Make: func(_ context.Context, e steps.Env) (map[string]masked.Value, error) {
			ca, err := certificate.NewAuthority(o.Name(e), o.Years(e))
			return map[string]masked.Value{"tls.crt": masked.New(string(ca.Cert)), "tls.key": ca.Key}, err
		},
	}
}

// Certificate returns the Doer that issues the certificate. The Doer reissues the certificate once two thirds of the
// validity are over, or when the CA or the host names have changed.
func (o Own) Certificate(file string) Issued {
	return Issued{action.Mint{File: file, Keys: []string{"tls.crt", "tls.key", "ca.crt"}, Make: o.issue}, o}
}

// Issued is the Doer for a certificate that carrick's own CA issues.
type Issued struct {
	action.Mint
	own Own
}

// Plan adds the reissue of the certificate if it is due.
func (m Issued) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := m.Mint.Plan(ctx, e)
	if err != nil {
		return c, err
	}
	why, err := m.own.worn(ctx, e)
	if err != nil || why == "" {
		return c, err
	}
	for i := range c.Items {
		c.Items[i].Verb, c.Items[i].Note = steps.Update, "issues a new certificate: "+why
		c.Items[i].Hash = "new:" + why
	}
	c.Permissions = append(
		c.Permissions, permission.Rule{Verb: "patch", Resource: "secrets", Namespace: m.own.Namespace(e), Name: m.own.Leaf},
	)
	return c, nil
}

// Do issues the certificate. A reissue replaces the certificate and its key in one write, so that the server never
// reads a mismatched pair.
func (m Issued) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	why, err := m.own.worn(ctx, e)
	if err != nil {
		return err
	}
	if why == "" {
		return m.Mint.Do(ctx, e, say)
	}
	made, err := m.own.issue(ctx, e)
	if err != nil {
		return err
	}
	data := map[string]any{}
	for k, v := range made {
		data[k] = base64.StdEncoding.EncodeToString([]byte(v.Reveal()))
	}
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return err
	}
	in := m.own.Namespace(e)
	if _, err := e.Cluster.Patch(
		ctx, check.Secrets, in, m.own.Leaf, patch, cluster.PatchOptions{Manager: e.Manager()},
	); err != nil {
		return err
	}
	say.Did(steps.Update, "Secret "+in+"/"+m.own.Leaf, "")
	return nil
}

func (o Own) issue(ctx context.Context, e steps.Env) (map[string]masked.Value, error) {
	ca, err := o.authority(ctx, e)
	if err != nil {
		return nil, err
	}
	leaf, err := certificate.Issue(ca, o.Hosts(e), o.Days(e))
	if err != nil {
		return nil, err
	}
	return map[string]masked.Value{
		"tls.crt": masked.New(string(leaf.Cert)), "tls.key": leaf.Key, "ca.crt": masked.New(string(ca.Cert)),
	}, nil
}

func (o Own) authority(ctx context.Context, e steps.Env) (certificate.Pair, error) {
	v, _, err := fetched(ctx, e, o.Namespace(e), o.CA)
	if err != nil {
		return certificate.Pair{}, err
	}
	if v["tls.crt"].IsZero() || v["tls.key"].IsZero() {
		return certificate.Pair{}, steps.Absent("requires the CA first (Secret %s)", o.CA)
	}
	return certificate.Pair{Cert: []byte(v["tls.crt"].Reveal()), Key: v["tls.key"]}, nil
}

// fetched bypasses the cache. by is the link that created the Secret. If the Secret does not exist, values is nil.
func fetched(
	ctx context.Context, e steps.Env, namespace, name string,
) (values map[string]masked.Value, by string, err error) {
	want := &unstructured.Unstructured{
		Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "namespace": namespace},
		},
	}
	got, err := e.Cluster.Fetch(ctx, want)
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	data, _, _ := unstructured.NestedStringMap(got.Object, "data")
	values = map[string]masked.Value{}
	for k, v := range data {
		b, err := base64.StdEncoding.DecodeString(v)
		if err != nil {
			return nil, "", err
		}
		values[k] = masked.New(string(b))
	}
	by, err = inventory.Creator(ctx, e, got)
	return values, by, err
}

// worn returns why the issued certificate must be reissued. The reason is that the certificate expires soon or no
// longer matches its specification. If the certificate is good, does not exist or was not created by this link, worn
// returns "".
func (o Own) worn(ctx context.Context, e steps.Env) (string, error) {
	v, by, err := fetched(ctx, e, o.Namespace(e), o.Leaf)
	if err != nil || v["tls.crt"].IsZero() || v["tls.key"].IsZero() || v["ca.crt"].IsZero() || by != e.Link {
		return "", err
	}
	ca, err := o.authority(ctx, e)
	if steps.IsAbsent(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	chain, err := probe.ParseCerts([]byte(v["tls.crt"].Reveal()))
	if err != nil {
		return "the existing certificate cannot be read", nil
	}
	roots, err := probe.Pool(ca.Cert)
	if err != nil {
		return "", err
	}
	for _, host := range o.Hosts(e) {
		if chain[0].VerifyHostname(host) != nil {
			return "the existing certificate is for " + strings.Join(probe.Names(chain[0]), ", ") + ", not for " + host, nil
		}
	}
	if time.Until(chain[0].NotAfter) < Life(chain[0])/3 {
		return "the existing certificate expires on " + chain[0].NotAfter.UTC().Format(time.DateOnly), nil
	}
	if kind, _ := probe.CertProblem(chain, roots, "", time.Now()); kind == probe.UnknownAuthority {
		return "the CA has changed", nil
	}
	switch _, bad := tls.X509KeyPair([]byte(v["tls.crt"].Reveal()), []byte(v["tls.key"].Reveal())); {
	case bad != nil: // not reported, because the error can quote the content
		return "the existing key does not belong to the certificate", nil
	case strings.TrimSpace(v["ca.crt"].Reveal()) != strings.TrimSpace(string(ca.Cert)):
		return "the existing ca.crt is not the CA's certificate", nil
	}
	return "", nil
}
