package liqo

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"carrick/cluster/clean"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/check"
)

// week is the minimum remaining validity of the webhooks' certificate.
const week = 7 * 24 * time.Hour

// webhook describes Liqo's webhook server and its certificate.
type webhook struct {
	namespace, name string // of the Service and the Deployment
	chain           []*x509.Certificate
	renew           string // the command that renews the certificate
}

func (w webhook) secret() string { return w.name + "-certs" }

// liqoWebhook returns Liqo's webhook server and its certificate. fault describes a problem with the certificate's
// Secret, or is "" if there is none.
//
// Source: liqotech/liqo pkg/webhooks/secretcontroller: at startup, the webhook server recreates missing parts of the
// Secret and writes the new CA into the webhook configurations.
func liqoWebhook(ctx context.Context, e steps.Env) (w webhook, fault string, err error) {
	d, err := liqoDeployment(ctx, e, "webhook")
	if err != nil {
		return w, "", err
	}
	w = webhook{namespace: d.Namespace, name: d.Name}
	in := e.Kubectl() + " -n " + w.namespace
	w.renew = in + " patch secret " + w.secret() + ` --type merge -p '{"data":null}' && ` + in +
		" rollout restart deployment " + w.name
	where := "Secret " + w.namespace + "/" + w.secret()
	s, err := e.Cluster.Secret(ctx, w.namespace, w.secret(), "tls.crt")
	if apierrors.IsNotFound(err) {
		w.renew = chartAgain(ctx, e) + "    # the chart creates the Secret, and the webhook fills it at startup: " + in +
			" rollout restart deployment " + w.name
		return w, where + " does not exist", nil
	}
	if err != nil {
		return w, "", err
	}
	if s.Keys["tls.crt"] == 0 {
		return w, where + " has no tls.crt", nil
	}
	if w.chain, err = probe.ParseCerts([]byte(s.Data["tls.crt"].Reveal())); err != nil {
		return w, fmt.Sprintf("tls.crt of %s: %v", where, err), nil
	}
	return w, "", nil
}

func webhooksAnswer(ctx context.Context, e steps.Env) steps.Result {
	w, fault, err := liqoWebhook(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if fault != "" {
		return steps.Failed(fault, w.renew)
	}
	ready, err := check.ReadyAddresses(ctx, e.Cluster, w.namespace, w.name)
	if err != nil {
		return steps.Errored(err)
	}
	if ready == 0 {
		return steps.Failed(
			fmt.Sprintf(
				"Service %s/%s has no ready pod, so the API server rejects every write of a Tenant or a ResourceSlice",
				w.namespace, w.name,
			),
			e.Kubectl()+" -n "+w.namespace+" get service,endpointslices,pods -o wide",
		)
	}
	now, renews, early := time.Now(), renewsWebhooks(e), check.Month
	if renews {
		early = week
	}
	if left := w.chain[0].NotAfter.Sub(now); left > 0 && left < week && !renews {
		return steps.Failed(
			fmt.Sprintf(
				"the certificate in Secret %s/%s expires in %d days, on %s, and this release does not renew it", w.namespace,
				w.secret(), int(left.Hours()/24), w.chain[0].NotAfter.Format(time.DateOnly),
			),
			w.renew,
		)
	}
	r := check.Lasts(w.chain[0], early, now, w.renew)
	switch r.Status {
	case steps.Fail, steps.Warn:
		r.Found = fmt.Sprintf("Secret %s/%s: %s", w.namespace, w.secret(), r.Found)
	case steps.Pass:
		r.Found = fmt.Sprintf("ready pods: %d, in Service %s/%s; %s", ready, w.namespace, w.name, r.Found)
	}
	return r
}

// lastWithoutRenewal is the last release that does not renew the webhooks' certificate. Builds that are not releases
// might also renew this certificate.
//
// Source: liqotech/liqo#3343. v1.2.0 was released on 2026-07-02.
const lastWithoutRenewal = "1.2.0"

// renewsWebhooks reports whether the installed Liqo version might renew the webhooks' certificate. It returns false if
// the version is unknown.
func renewsWebhooks(e steps.Env) bool {
	tag, err := e.Own.Text("liqo-version")
	if err != nil {
		return false
	}
	own, err := version.ParseSemantic(tag)
	return err != nil || version.MustParseSemantic(lastWithoutRenewal).LessThan(own)
}

func webhooksTrusted(ctx context.Context, e steps.Env) steps.Result {
	w, fault, err := liqoWebhook(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if fault != "" {
		return steps.Skipped("%s", fault)
	}
	var hooks []hook
	for _, gvr := range []schema.GroupVersionResource{check.ValidatingWebhooks, check.MutatingWebhooks} {
		found, err := living(ctx, e, gvr, "", "")
		if err != nil {
			return steps.Errored(err)
		}
		for _, o := range found {
			hooks = append(hooks, hooksAt(o, w.namespace, w.name)...)
		}
	}
	if len(hooks) == 0 {
		return steps.Skipped("no registered webhook uses Service %s/%s", w.namespace, w.name)
	}
	for _, h := range hooks {
		roots, err := probe.Pool(h.ca)
		if err != nil {
			return steps.Failed(fmt.Sprintf("webhook %s of %s has no valid CA: %v", h.name, h.of, err), w.renew)
		}
		if problem, why := probe.CertProblem(w.chain, roots, w.name+"."+w.namespace+".svc", time.Time{}); problem != "" {
			return steps.Failed(
				fmt.Sprintf(
					"the CA of webhook %s of %s does not match the certificate in Secret %s/%s: %s", h.name, h.of, w.namespace,
					w.secret(), why,
				),
				w.renew,
			)
		}
	}
	return steps.Passed("%s registered with the matching CA", steps.Plural(len(hooks), "webhook"))
}

type hook struct {
	of, name string
	ca       []byte
}

// hooksAt returns the webhooks of a webhook configuration that call the given Service.
func hooksAt(o *unstructured.Unstructured, namespace, service string) []hook {
	all, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
	var out []hook
	for _, item := range all {
		m, _ := item.(map[string]any)
		to, _, _ := unstructured.NestedMap(m, "clientConfig", "service")
		if to["namespace"] != namespace || to["name"] != service {
			continue
		}
		name, _ := m["name"].(string)
		encoded, _, _ := unstructured.NestedString(m, "clientConfig", "caBundle")
		ca, _ := base64.StdEncoding.DecodeString(encoded)
		out = append(out, hook{o.GetKind() + " " + o.GetName(), clean.Text(name), ca})
	}
	return out
}
