package interlink

import (
	"cmp"
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/certs"
	"carrick/steps/check"
)

// byPublicCA is the value of cert.source for a certificate from a public CA.
const byPublicCA = "public"

// These are the cert-manager objects that carrick creates in the endpoint's namespace.
const (
	rootIssuer = "selfsigned-root-issuer"
	rootCert   = "interlink-api-root-ca"
	issuerName = "interlink-api-issuer"
)

func certificates() steps.Step {
	return steps.Step{
		Name: "certificates", Title: "Certificates",
		Map: steps.MapRow{Local: "certificate, CA"},
		Why: "Each job gets the CA that signs the endpoint's certificate, so the CA is valid for years and the certificate " +
			"for months. A renewed certificate requires no other change. A new CA must reach the virtual kubelet, and jobs " +
			"that are already running never get it.",
		When: not(byServer),
		Ask:  certificateQuestions(),
		Facts: []steps.Fact{
			{
				Name: "cert-manager-serves", Title: "whether the cluster serves cert-manager's Certificates", On: steps.Local,
				Learn: certs.Served,
			},
		},
		Actions: []steps.Action{
			{
				Name: "issuers", Title: "Create a CA and the endpoint's certificate with cert-manager",
				On: steps.Local, Needs: []string{"endpoint-namespace", "cert-manager-ready"},
				When: endpointSignedBy(certs.ByCertManager),
				Doer: certs.Managed{
					Manifest: action.Manifest{
						File: "certificate.yaml",
						Values: action.Values{
							"addresses": hostsOf(true), "names": hostsOf(false), "ca-hours": certs.Hours("cert.ca-years", 365),
							"hours": certs.Hours("cert.days", 1),
						},
					},
					Namespace: space, Leaf: certSecret, Writes: map[string]string{caSecret: rootCert, certSecret: certSecret},
					Home: "namespace",
				},
			},
			{
				Name: "own-ca", Title: "Create a CA for the endpoint",
				On: steps.Local, Needs: []string{"endpoint-namespace"}, When: endpointSignedBy(certs.ByCarrick),
				Doer: own.Authority("own-ca.yaml"),
			},
			{
				Name: "own-certificate", Title: "Issue the endpoint's certificate",
				On: steps.Local, Needs: []string{"endpoint-namespace"}, When: endpointSignedBy(certs.ByCarrick),
				Doer: own.Certificate("own-certificate.yaml"),
			},
		},
		Checks: certificateChecks(),
	}
}

func certificateQuestions() []steps.Question {
	made := func(e steps.Env) bool {
		return mode(e) == byIngress || endpointSignedBy(certs.ByCertManager)(e) || endpointSignedBy(certs.ByCarrick)(e)
	}
	return []steps.Question{
		{
			Key: "cert.source", Title: "Signer of the endpoint's certificate", Kind: steps.Pick, When: in(byProxy),
			Adopt: adoptSource,
			Help: "cert-manager: renews the certificate automatically. own: carrick creates a CA and issues the certificate; " +
				"carrick apply renews it. public: you put a certificate from a public CA into a Secret, and jobs trust it " +
				"through the CAs in their images.",
			Of: append(certs.Signers(), steps.Choice{
				Value: byPublicCA, Title: "public: from a public CA, in a Secret that you create",
			}),
			Default: certs.DefaultSigner("cert-manager-serves"),
		},
		{
			Key: "cert.days", Title: "Certificate validity (days)", Kind: steps.Number, When: made,
			Check:   steps.Between(2, 825),
			Adopt:   certs.Existing(adoptedEndpointSecret).AdoptDays,
			Default: steps.Fixed(90, "like certificates of public CAs"),
			Help: "The certificate is renewed when a third of its validity is left. Running jobs are not affected, because " +
				"they trust the CA.",
		},
		{
			Key: "cert.ca-years", Title: "CA validity (years)", Kind: steps.Number, When: made, Check: steps.Between(1, 30),
			Adopt:   certs.Existing(adoptedEndpointSecret).AdoptYears,
			Default: steps.Fixed(10, "default"),
			Help: "A new CA must reach the virtual kubelet, and running jobs keep the old CA. The published guide " +
				"uses 100 years.",
		},
		{
			Key: "cert.secret", Title: "Secret of the public certificate", Kind: steps.Name, When: endpointSignedBy(byPublicCA),
			Adopt: adoptCertSecret,
			Help: "Enter a Secret of type kubernetes.io/tls in the endpoint's namespace, with the certificate chain " +
				"in tls.crt.",
			Default: steps.Fixed(certSecret, "the name that the proxy uses"),
		},
	}
}

// endpointSignedBy returns a condition that is true if the mode is proxy and cert.source equals source.
func endpointSignedBy(source string) func(steps.Env) bool {
	return func(e steps.Env) bool { return mode(e) == byProxy && e.Answers.Text("cert.source") == source }
}

// own configures the endpoint's CA and certificate if cert.source is own.
var own = certs.Own{
	Namespace: space, CA: caSecret, Leaf: certSecret,
	Name:  func(e steps.Env) string { return "carrick " + e.Link + " endpoint CA" },
	Hosts: func(e steps.Env) []string { return []string{e.Answers.Text("exposure.address")} },
	Days:  func(e steps.Env) int { return e.Answers.Int("cert.days") },
	Years: func(e steps.Env) int { return e.Answers.Int("cert.ca-years") },
}

// hostsOf returns a function that computes the certificate's SANs of one type for a template: IP addresses if addresses
// is true, and DNS names otherwise. The only SAN is the endpoint's address.
func hostsOf(addresses bool) func(context.Context, steps.Env) (any, error) {
	return func(_ context.Context, e steps.Env) (any, error) {
		a := e.Answers.Text("exposure.address")
		if isAddress(a) != addresses {
			return nil, nil
		}
		return []string{a}, nil
	}
}

// endpointSecret returns the name of the Secret that contains the endpoint's certificate.
func endpointSecret(ctx context.Context, e steps.Env) (string, error) {
	if mode(e) == byProxy {
		return proxySecret(e), nil
	}
	i, err := chain(ctx, e)
	if err != nil {
		return "", err
	}
	if s := ingressSecret(i); s != "" {
		return s, nil
	}
	return "", steps.Absent("Ingress %s names no TLS Secret", i.Name)
}

func proxySecret(e steps.Env) string {
	if endpointSignedBy(byPublicCA)(e) {
		return e.Answers.Text("cert.secret")
	}
	return certSecret
}

func readSecret(ctx context.Context, e steps.Env) (*cluster.Secret, error) {
	name, err := endpointSecret(ctx, e)
	if err != nil {
		return nil, err
	}
	return certs.Secret(ctx, e, space(e), name)
}

// learnEndpointCA returns the CA that the endpoint's certificate verifies against, in PEM. It omits everything in
// ca.crt that is not a certificate, because carrick shares facts with other machines.
func learnEndpointCA(ctx context.Context, e steps.Env) (any, error) {
	if mode(e) == byServer {
		return kubeCA(ctx, e, "default")
	}
	if endpointSignedBy(byPublicCA)(e) {
		return nil, steps.Absent("a public CA signs the endpoint's certificate, so jobs get no CA")
	}
	s, err := readSecret(ctx, e)
	if err != nil {
		return nil, err
	}
	if s.Data["ca.crt"].IsZero() {
		return nil, steps.Absent("Secret %s has no ca.crt", s.Name)
	}
	return certs.Only([]byte(s.Data["ca.crt"].Reveal()))
}

func kubeCA(ctx context.Context, e steps.Env, namespace string) (any, error) {
	m, err := check.Get[corev1.ConfigMap](ctx, e.Cluster, check.ConfigMaps, namespace, rootCA)
	if apierrors.IsNotFound(err) {
		return nil, steps.Absent("ConfigMap %s does not exist in %s yet", rootCA, namespace)
	}
	if err != nil {
		return nil, err
	}
	return certs.Only([]byte(m.Data["ca.crt"]))
}

func learnProvedBy(ctx context.Context, e steps.Env) (any, error) {
	switch {
	case mode(e) == byServer:
		return "kube", nil
	case endpointSignedBy(byPublicCA)(e):
		return "public", nil
	case mode(e) == byIngress:
		s, err := readSecret(ctx, e)
		if err != nil {
			return nil, err
		}
		if s.Data["ca.crt"].IsZero() {
			return "public", nil
		}
	}
	return "own", nil
}

func adoptSource(ctx context.Context, e steps.Env) (any, string, error) {
	s, from, err := adoptedEndpointSecret(ctx, e)
	if err != nil || s == nil {
		return nil, "", err
	}
	switch {
	case s.Annotations["cert-manager.io/issuer-name"] != "" && !s.Data["ca.crt"].IsZero():
		return certs.ByCertManager, from, nil
	case s.Data["ca.crt"].IsZero():
		return byPublicCA, from + " has no ca.crt", nil
	}
	return certs.ByCarrick, from, nil
}

// adoptedEndpointSecret returns the existing Secret with the endpoint's certificate, and a description of the Secret.
// It returns nil if the Secret does not exist.
func adoptedEndpointSecret(ctx context.Context, e steps.Env) (*cluster.Secret, string, error) {
	if mode(e) == byServer {
		return nil, "", nil
	}
	name, err := mountedSecret(ctx, e)
	if err != nil {
		return nil, "", err
	}
	s, err := e.Cluster.Secret(ctx, space(e), name, "tls.crt", "ca.crt")
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	return s, "Secret " + name, err
}

// mountedSecret returns the name of the Secret that the proxy's Deployment mounts as volume tls. The default is the
// name in the published guide.
func mountedSecret(ctx context.Context, e steps.Env) (string, error) {
	d, err := check.Get[appsv1.Deployment](ctx, e.Cluster, check.Deployments, space(e), proxyName)
	if apierrors.IsNotFound(err) {
		return certSecret, nil
	}
	if err != nil {
		return "", err
	}
	return cmp.Or(check.MountedSecret(d, "tls"), certSecret), nil
}

func adoptCertSecret(ctx context.Context, e steps.Env) (any, string, error) {
	s, _, err := adoptedEndpointSecret(ctx, e)
	if err != nil || s == nil {
		return nil, "", err
	}
	return s.Name, "the volume of Deployment " + proxyName, nil
}
