package interlink

import (
	"context"
	"fmt"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/steps"
	"carrick/steps/action"
)

// repairedFiles exports corrected versions of the published guide's files. carrick does not apply them.
func repairedFiles() action.Call {
	leave := func(context.Context, steps.Env) (steps.Change, error) {
		return steps.Change{
			Items: []steps.Item{
				{
					Verb: steps.Leave, What: "the published guide's chain",
					Note: "carrick does not install it, but carrick export writes its files with corrections",
				},
			},
		}, nil
	}
	return action.Call{
		Preview: leave,
		Make:    func(context.Context, steps.Env, steps.Progress) error { return nil },
		Keeps:   "carrick installed no part of the published guide's ingress setup",
		Exports: exportChain,
	}
}

// values is a mapping in a Helm values file.
type values map[string]any

func exportChain(_ context.Context, e steps.Env) ([]action.Exported, error) {
	c := proxyConf
	c.listen, c.tls, c.kubeCA, c.temp = proxyListens, "/tls", "/kube/ca.crt", "/tmp"
	conf, err := c.encode()
	if err != nil {
		return nil, err
	}
	ns, address, port := space(e), e.Answers.Text("exposure.address"), e.Answers.Int("exposure.port")
	proxied, err := yamlBytes(values{
		"image":        values{"registry": "docker.io", "repository": "bitnamilegacy/nginx"},
		"global":       values{"security": values{"allowInsecureImages": true}},
		"replicaCount": 1,
		"command":      []string{"nginx", "-e", "stderr", "-c", "/conf/nginx.conf", "-g", "daemon off;"}, "args": []string{},
		"containerPorts": values{"http": proxyListens, "https": ""},
		// The chart's default readiness probe sends plain HTTP. nginx expects TLS on this port and answers 400, so no
		// pod would become ready.
		"customReadinessProbe": values{"tcpSocket": values{"port": "http"}, "periodSeconds": 5},
		"service":              values{"type": "ClusterIP", "ports": values{"http": proxyListens}},
		"extraVolumes": []any{
			values{"name": "conf", "configMap": values{"name": proxyName}},
			values{"name": "kube", "configMap": values{"name": rootCA}},
			values{"name": "tls", "secret": values{"secretName": certSecret}},
		},
		"extraVolumeMounts": []any{
			values{"name": "conf", "mountPath": "/conf"},
			values{"name": "kube", "mountPath": "/kube"},
			values{"name": "tls", "mountPath": "/tls"},
		},
	})
	if err != nil {
		return nil, err
	}
	controls, err := yamlBytes(values{"controller": values{
		"ingressClass":         "nginx-internal",
		"ingressClassResource": values{"name": "nginx-internal", "controllerValue": "k8s.io/ingress-nginx-internal"},
		"extraArgs":            values{"default-ssl-certificate": ns + "/" + certSecret},
		"service":              values{"ports": values{"http": 6080, "https": port}},
	}})
	if err != nil {
		return nil, err
	}
	out := []action.Exported{
		{
			Note: "ingress-nginx is retired and gets no fixes, and images of docker.io/bitnami are frozen. exposure.mode " +
				"proxy requires neither",
		},
		{Object: object("v1", "Namespace", "", ns, nil)},
		{Object: object("v1", "ConfigMap", ns, proxyName, map[string]any{"data": map[string]any{"nginx.conf": conf}})},
		{Path: "nginx-values.yaml", Content: proxied},
		{Path: "ingress-values.yaml", Content: controls},
		{Object: chainIngress(ns, address)},
	}
	for _, o := range chainCertificates(e, ns, address) {
		out = append(out, action.Exported{Object: o})
	}
	files := "files/" + string(steps.Local) + "/"
	return append(
		out,
		action.Exported{
			Hand: fmt.Sprintf(
				`%[4]s upgrade --install %[5]s oci://registry-1.docker.io/bitnamicharts/nginx -n %[1]s --values %[2]snginx-values.yaml
helm repo add ingress-nginx https://kubernetes.github.io/ingress-nginx
%[4]s upgrade --install my-ingress-nginx ingress-nginx/ingress-nginx -n %[1]s --values %[2]singress-values.yaml
# in kind: add controller.hostPort.enabled=true and controller.hostPort.ports.https=%[3]d. The port must be in extraPortMappings, which kind reads only when it creates the cluster`,
				ns, files, port, e.Helm(), chainService,
			),
		},
	), nil
}

// object returns a Kubernetes object. more contains the fields that are specific to its kind.
func object(version, kind, namespace, name string, more map[string]any) *unstructured.Unstructured {
	meta := map[string]any{"name": name}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "metadata": meta}}
	for k, v := range more {
		o.Object[k] = v
	}
	return o
}

func yamlBytes(v any) ([]byte, error) { return yaml.Marshal(v) }

// chainIngress returns the published Ingress with corrections: it forwards all four paths, uses TLS to the backend,
// keeps idle watches open, and omits the annotations that no controller reads.
func chainIngress(ns, address string) *unstructured.Unstructured {
	paths := []any{}
	for _, p := range servedPaths {
		paths = append(
			paths,
			map[string]any{
				"path": "/" + p, "pathType": "Prefix",
				"backend": map[string]any{
					"service": map[string]any{"name": chainService, "port": map[string]any{"number": int64(proxyListens)}},
				},
			},
		)
	}
	rule := map[string]any{"http": map[string]any{"paths": paths}}
	if !isAddress(address) {
		rule["host"] = address
	}
	notes := map[string]any{"nginx.ingress.kubernetes.io/backend-protocol": "HTTPS"}
	for k, v := range chainNotes {
		notes[k] = v
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
		"metadata": map[string]any{"name": "kubernetes-api", "namespace": ns, "annotations": notes},
		"spec": map[string]any{
			"ingressClassName": "nginx-internal", "rules": []any{rule},
			"tls": []any{map[string]any{"hosts": []any{address}, "secretName": certSecret}},
		},
	}}
}

// chainCertificates returns the Issuers and the Certificates for the Ingress, all in namespace ns.
func chainCertificates(e steps.Env, ns, address string) []*unstructured.Unstructured {
	of := func(kind, name string, spec map[string]any) *unstructured.Unstructured {
		return object("cert-manager.io/v1", kind, ns, name, map[string]any{"spec": spec})
	}
	key := map[string]any{"algorithm": "ECDSA", "size": int64(256), "rotationPolicy": "Never"}
	leaf := map[string]any{
		"secretName": certSecret, "duration": fmt.Sprintf("%dh", e.Answers.Int("cert.days")*24),
		"issuerRef": map[string]any{"name": issuerName, "kind": "Issuer", "group": "cert-manager.io"},
	}
	field := "dnsNames"
	if isAddress(address) {
		field = "ipAddresses"
	}
	leaf[field] = []any{address}
	return []*unstructured.Unstructured{
		of("Issuer", rootIssuer, map[string]any{"selfSigned": map[string]any{}}),
		of("Certificate", rootCert, map[string]any{
			"isCA": true, "commonName": rootCert, "secretName": caSecret,
			"duration": fmt.Sprintf("%dh", e.Answers.Int("cert.ca-years")*8760), "privateKey": key,
			"issuerRef": map[string]any{"name": rootIssuer, "kind": "Issuer", "group": "cert-manager.io"},
		}),
		of("Issuer", issuerName, map[string]any{"ca": map[string]any{"secretName": caSecret}}),
		of("Certificate", certSecret, leaf),
	}
}
