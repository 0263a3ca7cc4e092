package vsphere

import (
	"context"
	"crypto/rand"
	"slices"

	"carrick/cluster"
	"carrick/cluster/masked"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/certs"
	"carrick/steps/check"
)

// Names of the Secrets for the extension's certificate. With cert-manager, each Certificate has the same name as the
// Secret that it writes.
const (
	tlsSecret                  = "vsphere-extensions-tls" // upstream's name
	certificateAuthoritySecret = "vsphere-extensions-ca"
	storeSecret                = "vsphere-extensions-keystore" // the password of upstream's keystore
)

func certificates() steps.Step {
	return steps.Step{
		Name: "certificates", Title: "Extension and certificates",
		Map: steps.MapRow{Local: "certificate"},
		Why: "The API server calls the extension over TLS and trusts only the CA in the webhook. The extension gets its " +
			"own CA, because Kubernetes no longer has the API that signed the published guide's certificate. cert-manager " +
			"renews the certificates automatically. Without cert-manager, carrick apply renews them.",
		When: runsExtension,
		Ask:  certificateQuestions(),
		Facts: []steps.Fact{
			{
				Name: "extension-ca", Title: "the CA that signs the extension's certificate", On: steps.Local,
				Learn: learnExtensionCA,
			},
		},
		Actions: []steps.Action{
			{
				Name: "extension-namespace", Title: "Create the extension's namespace", On: steps.Local,
				Needs: []string{"guest-cluster"},
				Doer:  action.Manifest{File: "extension-namespace.yaml"},
			},
			{
				Name: "cert-password", Title: "Create a password for the keystore", On: steps.Local,
				Needs: []string{"extension-namespace"}, When: both(usesWebhook, runsUpstream),
				Doer: action.Mint{File: "cert-password.yaml", Keys: []string{"password"}, Make: makePassword},
			},
			{
				Name: "cert-managed", Title: "Create a CA and a certificate with cert-manager",
				On: steps.Local, Needs: []string{"extension-namespace", "cert-manager-ready"},
				When: webhookSignedBy(certs.ByCertManager),
				Doer: certs.Managed{
					Manifest: action.Manifest{
						File: "cert-managed.yaml",
						Values: action.Values{
							"ca-hours": certs.Hours("cert.ca-years", 365), "hours": certs.Hours("cert.days", 1), "names": extensionHosts,
							"keystores": keystores,
						},
					},
					Namespace: extensionSpace, Leaf: tlsSecret,
					Writes: map[string]string{certificateAuthoritySecret: certificateAuthoritySecret, tlsSecret: tlsSecret},
					Home:   "extension-namespace",
				},
			},
			{
				Name: "cert-ca", Title: "Create a CA for the extension",
				On: steps.Local, Needs: []string{"extension-namespace"}, When: webhookSignedBy(certs.ByCarrick),
				Doer: ownCerts.Authority("cert-ca.yaml"),
			},
			{
				Name: "cert-own", Title: "Issue the extension's certificate",
				On: steps.Local, Needs: []string{"extension-namespace"}, When: webhookSignedBy(certs.ByCarrick),
				Doer: ownCerts.Certificate("cert-own.yaml"),
			},
		},
		Checks: certificateChecks(),
	}
}

func certificateQuestions() []steps.Question {
	return []steps.Question{
		{
			Key: "extension.program", Title: "Extension program", Kind: steps.Pick, When: usesWebhook,
			Default: steps.Fixed(byCarrick, "recommended"), Adopt: adoptProgram,
			Help: "carrick: the carrick binary, in the image that make image builds. It replaces only the StorageClasses in " +
				"mutation.replaces, and uses a renewed certificate without a restart. upstream: the published guide's Java " +
				"program of 2020. It changes every ReadWriteMany claim, regardless of its StorageClass, and must be restarted " +
				"for each new certificate.",
			Of: []steps.Choice{
				{Value: byCarrick, Title: "carrick: small, and without permissions if it only serves the webhook"},
				{Value: byUpstream, Title: "upstream: keeyzar/vsphere-extensions-jvm, as published"},
			},
		},
		{
			Key: "extension.namespace", Title: "Namespace of the extension", Kind: steps.Namespace, Adopt: adoptExtensionSpace,
			Help: "Use this namespace only for the extension. The published guide's certificate and webhook contain the " +
				"name vsphere-extensions.",
			Default: steps.Fixed(extensionName, "the published guide"),
		},
		{
			Key: "cert.source", Title: "Signer of the extension's certificate", Kind: steps.Pick,
			When: both(usesWebhook, runsCarrick), Default: certs.DefaultSigner("serves-cert-manager"), Adopt: adoptSigner,
			Help: "cert-manager: renews the certificate automatically and is part of Kubeflow. own: carrick creates a CA and " +
				"issues the certificate, and carrick apply renews it.",
			Of: certs.Signers(),
		},
		{
			Key: "cert.days", Title: "Certificate lifetime (days)", Kind: steps.Number, When: usesWebhook,
			Check:   steps.Between(2, 825),
			Adopt:   certs.Existing(adoptedExtensionSecret).AdoptDays,
			Help:    "A number from 2 to 825, such as 90. The certificate is renewed when a third of its lifetime is left.",
			Default: defaultDays,
		},
		{
			Key: "cert.ca-years", Title: "CA lifetime (years)", Kind: steps.Number, When: usesWebhook,
			Check: steps.Between(1, 30),
			Adopt: certs.Existing(adoptedExtensionSecret).AdoptYears,
			Help: "A number from 1 to 30. The webhook contains the CA, and carrick apply writes each new CA into " +
				"the webhook.",
			Default: steps.Fixed(10, "default"),
		},
	}
}

func both(a, b func(steps.Env) bool) func(steps.Env) bool {
	return func(e steps.Env) bool { return a(e) && b(e) }
}

// certificateSigner returns the signer of the extension's certificate: certs.ByCertManager or
// certs.ByCarrick. Upstream's program requires a keystore, which only cert-manager creates.
func certificateSigner(e steps.Env) string {
	if runsUpstream(e) {
		return certs.ByCertManager
	}
	return e.Answers.Text("cert.source")
}

// webhookSignedBy returns a condition that is true if the guide uses the webhook and source signs the webhook's
// certificate.
func webhookSignedBy(source string) func(steps.Env) bool {
	return func(e steps.Env) bool { return usesWebhook(e) && certificateSigner(e) == source }
}

func defaultDays(e steps.Env) (any, string) {
	if certificateSigner(e) == certs.ByCarrick {
		return 825, "default; only carrick apply renews the certificate"
	}
	return 90, "default; public CAs use similar lifetimes"
}

// ownCerts configures the extension's CA and certificate if cert.source is own.
var ownCerts = certs.Own{
	Namespace: extensionSpace, CA: certificateAuthoritySecret, Leaf: tlsSecret,
	Name:  func(e steps.Env) string { return "carrick " + e.Link + " extension CA" },
	Hosts: hosts,
	Days:  func(e steps.Env) int { return e.Answers.Int("cert.days") },
	Years: func(e steps.Env) int { return e.Answers.Int("cert.ca-years") },
}

// host returns the host name of the extension's Service, to which the API server sends webhook
// calls (kubernetes/kubernetes: staging/src/k8s.io/apiserver/pkg/util/webhook/client.go).
func host(e steps.Env) string { return extensionName + "." + extensionSpace(e) + ".svc" }

func hosts(e steps.Env) []string { return []string{host(e), host(e) + ".cluster.local"} }

func extensionHosts(_ context.Context, e steps.Env) (any, error) { return hosts(e), nil }

// keystores returns the Certificate field that makes cert-manager write a Java keystore next to the
// certificate. It returns nil for carrick's program, which needs no keystore.
func keystores(_ context.Context, e steps.Env) (any, error) {
	if !runsUpstream(e) {
		return nil, nil
	}
	return map[string]any{
		"jks": map[string]any{"create": true, "passwordSecretRef": map[string]any{"name": storeSecret, "key": "password"}},
	}, nil
}

func makePassword(context.Context, steps.Env) (map[string]masked.Value, error) {
	return map[string]masked.Value{"password": masked.New(rand.Text())}, nil
}

// extensionCertificate returns the Secret with the extension's certificate, or an AbsentError if
// the Secret does not exist.
func extensionCertificate(ctx context.Context, e steps.Env) (*cluster.Secret, error) {
	return certs.Secret(ctx, e, extensionSpace(e), tlsSecret)
}

// learnExtensionCA returns the CA bundle for the webhook, in PEM.
func learnExtensionCA(ctx context.Context, e steps.Env) (any, error) {
	s, err := extensionCertificate(ctx, e)
	if err != nil {
		return nil, err
	}
	if s.Data["ca.crt"].IsZero() {
		return nil, steps.Absent("Secret %s/%s has no ca.crt", s.Namespace, s.Name)
	}
	return certs.Only([]byte(s.Data["ca.crt"].Reveal()))
}

func adoptSigner(ctx context.Context, e steps.Env) (any, string, error) {
	s, from, err := adoptedExtensionSecret(ctx, e)
	if err != nil || s == nil {
		return nil, "", err
	}
	if s.Annotations["cert-manager.io/issuer-name"] != "" {
		return certs.ByCertManager, from, nil
	}
	return certs.ByCarrick, from, nil
}

// adoptedExtensionSecret returns the existing Secret with the extension's certificate, and a description of the Secret.
// It returns nil if the Secret does not exist.
func adoptedExtensionSecret(ctx context.Context, e steps.Env) (*cluster.Secret, string, error) {
	s, err := extensionCertificate(ctx, e)
	if steps.IsAbsent(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	return s, "Secret " + s.Namespace + "/" + s.Name, nil
}

func certificatePermissions(e steps.Env) []permission.Rule {
	if !runsExtension(e) {
		return nil
	}
	out, in := check.ToApply("", check.Namespaces), extensionSpace(e)
	switch {
	case webhookSignedBy(certs.ByCertManager)(e):
		out = slices.Concat(
			out, check.ToApply(in, certs.Issuers, certs.Certificates), check.ToFollow(in, check.Secrets),
			check.ToFollow("", check.CRDs),
		)
		if runsUpstream(e) {
			out = append(out, check.ToApply(in, check.Secrets)...)
		}
	case webhookSignedBy(certs.ByCarrick)(e):
		out = append(out, check.ToApply(in, check.Secrets)...)
	}
	return out
}
