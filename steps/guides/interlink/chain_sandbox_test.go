package interlink_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps/engine"
	"carrick/steps/guides/interlink"
	"carrick/steps/stepstest"
)

// chainOf returns the export of the published guide's chain: objects, files by path, and the commands to run manually.
func chainOf(
	t *testing.T, s *engine.Session,
) (objects []*unstructured.Unstructured, files map[string]string, hand string) {
	t.Helper()
	all, err := s.Export(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for _, a := range all.Actions {
		if a.Action != "ingress-files" {
			continue
		}
		if a.Pending != "" {
			t.Fatal(a.Pending)
		}
		for _, thing := range a.Things {
			switch {
			case thing.Object != nil:
				objects = append(objects, thing.Object)
			case thing.Path != "":
				files[thing.Path] = string(thing.Content)
			default:
				hand += thing.Hand
			}
		}
	}
	if len(objects) < 6 || len(files) != 2 {
		t.Fatalf("%d objects and %d files", len(objects), len(files))
	}
	return objects, files, hand
}

// The API server accepts the corrected files of the published guide's chain, cert-manager signs for the address, and
// the files contain nothing confidential.
func TestVerifyTheRepairedChainIsTaken(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	for name, address := range map[string]string{"an address": "192.0.2.7", "a name": "api.example.org"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := seeded(t, "")
			answers := map[string]any{
				"exposure.mode": "ingress", "exposure.address": address, "cert.days": 30, "cert.ca-years": 3,
			}
			s := stepstest.Open(t, box, interlink.Guide(), assets, "chain", answers)
			before := stepstest.Snapshot(t, box)
			objects, files, hand := chainOf(t, s)
			if len(stepstest.Snapshot(t, box)) != len(before) {
				t.Error("an export has made something")
			}
			var text strings.Builder
			for _, o := range objects {
				b, err := yaml.Marshal(o.Object)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&text, "---\n%s", b)
			}
			for what, said := range map[string]string{
				"objects": text.String(), "by hand": hand, "nginx-values.yaml": files["nginx-values.yaml"],
				"ingress-values.yaml": files["ingress-values.yaml"],
			} {
				if said == "" || strings.Contains(said, "PRIVATE KEY") || strings.Contains(said, "kind: Secret") ||
					strings.Contains(said, "eyJ") || strings.Contains(said, "bitnami/nginx") {
					t.Errorf("%s holds a secret, or what is gone:\n%s", what, said)
				}
			}
			box.Run(t, clustertest.Local, "", "create", "namespace", "ingress-nginx-internal")
			said := box.Run(
				t, clustertest.Local, text.String(), "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-",
			)
			for _, want := range []string{
				"ingress.networking.k8s.io/kubernetes-api", "configmap/k8s-api-proxy",
				"certificate.cert-manager.io/web-ssl-kubernetes-api", "issuer.cert-manager.io/interlink-api-issuer",
			} {
				if !strings.Contains(said, want+" serverside-applied (server dry run)") {
					t.Errorf("%s is not taken: %s", want, said)
				}
			}
			box.Run(t, clustertest.Local, text.String(), "apply", "--server-side", "-f", "-")
			box.Run(
				t, clustertest.Local, "", "-n", "ingress-nginx-internal", "wait", "--for=condition=Ready", "--timeout=300s",
				"certificate/web-ssl-kubernetes-api",
			)
			signedFor(t, box, address)
			chainValues(t, objects, files, address)
		})
	}
}

// signedFor verifies the certificates that cert-manager issues for the exported Certificates.
func signedFor(t *testing.T, box *clustertest.Sandbox, address string) {
	t.Helper()
	of := func(key string) *x509.Certificate {
		raw, err := base64.StdEncoding.DecodeString(box.Run(
			t, clustertest.Local, "", "-n", "ingress-nginx-internal", "get", "secret", "web-ssl-kubernetes-api", "-o",
			"jsonpath={.data."+key+"}",
		))
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(raw)
		if block == nil {
			t.Fatalf("%s holds no certificate", key)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	roots := x509.NewCertPool()
	roots.AddCert(of(`ca\.crt`))
	leaf := of(`tls\.crt`)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: address}); err != nil {
		t.Error(err)
	}
	if days := leaf.NotAfter.Sub(leaf.NotBefore).Hours() / 24; days != 30 {
		t.Errorf("it lasts for %v days", days)
	}
}

// chainValues verifies the exported fields that differ between an IP address and a DNS name.
func chainValues(t *testing.T, objects []*unstructured.Unstructured, files map[string]string, address string) {
	t.Helper()
	named := strings.Contains(address, "example")
	for _, o := range objects {
		switch o.GetKind() + "/" + o.GetName() {
		case "Ingress/kubernetes-api":
			rules, _, _ := unstructured.NestedSlice(o.Object, "spec", "rules")
			host, _, _ := unstructured.NestedString(rules[0].(map[string]any), "host")
			if named != (host == address) || (!named && host != "") {
				t.Errorf("the rule is for %q", host)
			}
			paths, _, _ := unstructured.NestedSlice(rules[0].(map[string]any), "http", "paths")
			if len(paths) != 4 {
				t.Errorf("%d paths", len(paths))
			}
			notes := o.GetAnnotations()
			if notes["nginx.ingress.kubernetes.io/backend-protocol"] != "HTTPS" ||
				notes["nginx.ingress.kubernetes.io/proxy-read-timeout"] != "3600" || notes["cert-manager.io/issuer"] != "" {
				t.Errorf("annotations %v", notes)
			}
		case "ConfigMap/k8s-api-proxy":
			conf, _, _ := unstructured.NestedString(o.Object, "data", "nginx.conf")
			for _, want := range []string{
				"listen 60443 ssl;", "$http_upgrade", "proxy_ssl_verify on;", "proxy_pass https://kubernetes.default.svc:443;",
			} {
				if !strings.Contains(conf, want) {
					t.Errorf("nginx.conf lacks %s:\n%s", want, conf)
				}
			}
		}
		if ns := o.GetNamespace(); ns != "ingress-nginx-internal" && o.GetKind() != "Namespace" {
			t.Errorf("%s %s is in %q", o.GetKind(), o.GetName(), ns)
		}
	}
	var controls, proxied map[string]any
	for name, into := range map[string]*map[string]any{"ingress-values.yaml": &controls, "nginx-values.yaml": &proxied} {
		if err := yaml.Unmarshal([]byte(files[name]), into); err != nil {
			t.Fatal(err)
		}
	}
	value := func(of map[string]any, path string) any {
		v, _, err := unstructured.NestedFieldNoCopy(of, strings.Split(path, ".")...)
		if err != nil {
			t.Error(err)
		}
		return v
	}
	for path, want := range map[string]any{
		"controller.ingressClassResource.name":            "nginx-internal",
		"controller.ingressClassResource.controllerValue": "k8s.io/ingress-nginx-internal",
		"controller.ingressClass":                         "nginx-internal",
		"controller.extraArgs.default-ssl-certificate":    "ingress-nginx-internal/web-ssl-kubernetes-api",
		"controller.service.ports.https":                  float64(60443),
	} {
		if got := value(controls, path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	for path, want := range map[string]any{
		"service.type": "ClusterIP", "service.ports.http": float64(60443), "containerPorts.http": float64(60443),
		"customReadinessProbe.tcpSocket.port": "http",
		"image.repository":                    "bitnamilegacy/nginx", "global.security.allowInsecureImages": true,
		"serverBlock": nil,
	} {
		if got := value(proxied, path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
}
