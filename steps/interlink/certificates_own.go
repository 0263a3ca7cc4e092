package interlink

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/check"
)

var secretKind = check.ConfigMaps.GroupVersion().WithResource("secrets")

func certsText(certs []*x509.Certificate) string {
	var b strings.Builder
	for _, c := range certs {
		_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}) // a Builder takes all
	}
	return b.String()
}

func makeCA(_ context.Context, e steps.Env) (map[string]cluster.Masked, error) {
	ca, err := cluster.NewCA("carrick "+e.Link+" endpoint CA", e.Answers.Int("cert.ca-years"))
	return map[string]cluster.Masked{"tls.crt": cluster.Mask(string(ca.Cert)), "tls.key": ca.Key}, err
}

// fetched are the values of a Secret as they stand this moment; nil: there is no
// such Secret.
func fetched(ctx context.Context, e steps.Env, name string) (values map[string]cluster.Masked, by string, err error) {
	want := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "namespace": space(e)}}}
	got, err := e.Cluster.Fetch(ctx, want)
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	data, _, _ := unstructured.NestedStringMap(got.Object, "data")
	values = map[string]cluster.Masked{}
	for k, v := range data {
		b, err := base64.StdEncoding.DecodeString(v)
		if err != nil {
			return nil, "", err
		}
		values[k] = cluster.Mask(string(b))
	}
	return values, steps.CreatedBy(got.GetAnnotations()), nil
}

// ownCA is the CA that carrick made.
func ownCA(ctx context.Context, e steps.Env) (cluster.Pair, error) {
	v, _, err := fetched(ctx, e, caSecret)
	if err != nil {
		return cluster.Pair{}, err
	}
	if v["tls.crt"].IsZero() || v["tls.key"].IsZero() {
		return cluster.Pair{}, steps.Absent("the CA is made first (Secret %s)", caSecret)
	}
	return cluster.Pair{Cert: []byte(v["tls.crt"].Reveal()), Key: v["tls.key"]}, nil
}

// issue makes the endpoint's certificate.
func issue(ctx context.Context, e steps.Env) (map[string]cluster.Masked, error) {
	ca, err := ownCA(ctx, e)
	if err != nil {
		return nil, err
	}
	leaf, err := cluster.Issue(ca, []string{e.Answers.Text("exposure.address")}, e.Answers.Int("cert.days"))
	if err != nil {
		return nil, err
	}
	return map[string]cluster.Masked{"tls.crt": cluster.Mask(string(leaf.Cert)), "tls.key": leaf.Key, "ca.crt": cluster.Mask(string(ca.Cert))}, nil
}

// issued issues the certificate, and anew where it is worn: two thirds of its
// life are over, its CA is another by now, or it is for another address.
type issued struct{ steps.Mint }

// Plan says that a worn certificate is issued anew.
func (m issued) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := m.Mint.Plan(ctx, e)
	if err != nil {
		return c, err
	}
	why, err := worn(ctx, e)
	if err != nil || why == "" {
		return c, err
	}
	for i := range c.Items {
		c.Items[i].Verb, c.Items[i].Note = steps.Update, "a new certificate is issued: "+why
		c.Items[i].Hash = "anew:" + why
	}
	c.Rights = append(c.Rights, cluster.Right{Verb: "patch", Resource: "secrets", Namespace: space(e), Name: certSecret})
	return c, nil
}

// Do issues it. A worn one is replaced in one write: the proxy has the old pair or
// the new one, and the next handshake shows it.
func (m issued) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	why, err := worn(ctx, e)
	if err != nil {
		return err
	}
	if why == "" {
		return m.Mint.Do(ctx, e, say)
	}
	made, err := issue(ctx, e)
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
	if _, err := e.Cluster.Patch(ctx, secretKind, space(e), certSecret, patch, cluster.PatchOptions{Manager: e.Manager()}); err != nil {
		return err
	}
	say.Did(steps.Update, "Secret "+space(e)+"/"+certSecret, "")
	return nil
}

// worn says why the certificate that carrick issued is to be issued anew: it is about
// to end, or is not what it was any more; "": it is not, or there is none, or it is
// somebody else's.
func worn(ctx context.Context, e steps.Env) (string, error) {
	v, by, err := fetched(ctx, e, certSecret)
	if err != nil || v["tls.crt"].IsZero() || v["tls.key"].IsZero() || v["ca.crt"].IsZero() || by != e.Link {
		return "", err
	}
	ca, err := ownCA(ctx, e)
	if _, absent := err.(*steps.AbsentError); absent {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	chain, err := probe.ParseCerts([]byte(v["tls.crt"].Reveal()))
	if err != nil {
		return "what stands there is no certificate", nil
	}
	roots, err := probe.Pool(ca.Cert)
	if err != nil {
		return "", err
	}
	leaf, address := chain[0], e.Answers.Text("exposure.address")
	switch left := time.Until(leaf.NotAfter); {
	case leaf.VerifyHostname(address) != nil:
		return "the one that stands there is for " + strings.Join(probe.Names(leaf), ", ") + ", not for " + address, nil
	case left < lifeOf(leaf)/3:
		return "the one that stands there ends on " + leaf.NotAfter.UTC().Format(time.DateOnly), nil
	}
	if kind, _ := probe.CertProblem(chain, roots, "", time.Now()); kind == probe.UnknownAuthority {
		return "the CA is another one now", nil
	}
	switch _, bad := tls.X509KeyPair([]byte(v["tls.crt"].Reveal()), []byte(v["tls.key"].Reveal())); {
	case bad != nil: // the error may say what stands there
		return "the key beside the one that stands there is not its own", nil
	case strings.TrimSpace(v["ca.crt"].Reveal()) != strings.TrimSpace(string(ca.Cert)):
		return "ca.crt beside it is not the CA's certificate", nil
	}
	return "", nil
}
