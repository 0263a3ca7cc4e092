// A fake of metrics-server (kubernetes-sigs/metrics-server). It serves discovery for the aggregated API
// metrics.k8s.io/v1beta1. All lists are empty, because nothing in the sandbox uses CPU or memory. Clients connect
// through the API server, which has already authenticated and authorized them.

package standin

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/sandbox/pki"
)

const (
	metricsGroup   = "metrics.k8s.io"
	metricsVersion = "v1beta1"
	metricsService = "metrics-server"
	metricsSpace   = "kube-system"
	metricsPath    = "/apis/" + metricsGroup + "/" + metricsVersion
)

// ErrNoAddress means that this machine has only loopback addresses. EndpointSlices reject those.
var ErrNoAddress = errors.New("this machine has no address other than loopback")

// Metrics is a running fake metrics-server of one cluster.
type Metrics struct {
	address   net.IP
	port      int
	authority []byte // PEM of the CA that signed its certificate
	server    *http.Server
}

// StartMetrics listens on a non-loopback address of this machine until Close is called. Clients need a certificate from
// the CA frontProxy (PEM).
func StartMetrics(frontProxy []byte) (*Metrics, error) {
	address, err := ownAddress()
	if err != nil {
		return nil, err
	}
	authority, err := pki.NewAuthority(metricsService)
	if err != nil {
		return nil, err
	}
	config, err := tlsConfig(authority, frontProxy)
	if err != nil {
		return nil, err
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(address.String(), "0"), config)
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Handler:           http.HandlerFunc(answerMetrics),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	go func() { _ = server.Serve(listener) }()
	port := listener.Addr().(*net.TCPAddr).Port
	return &Metrics{address: address, port: port, authority: authority.Cert, server: server}, nil
}

// Close stops the server.
func (m *Metrics) Close() { _ = m.server.Close() }

// Objects returns the objects that register the server with its cluster.
func (m *Metrics) Objects() []*unstructured.Unstructured {
	inKubeSystem := map[string]any{"name": metricsService, "namespace": metricsSpace}
	return []*unstructured.Unstructured{
		{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": inKubeSystem,
			"spec": map[string]any{"ports": []any{map[string]any{"name": "https", "port": int64(443), "protocol": "TCP"}}},
		}},
		{Object: map[string]any{
			"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
			"metadata": map[string]any{
				"name": metricsService, "namespace": metricsSpace,
				"labels": map[string]any{
					"kubernetes.io/service-name":             metricsService,
					"endpointslice.kubernetes.io/managed-by": "carrick-sandbox",
				},
			},
			"addressType": "IPv4",
			"ports":       []any{map[string]any{"name": "https", "port": int64(m.port), "protocol": "TCP"}},
			"endpoints":   []any{map[string]any{"addresses": []any{m.address.String()}}},
		}},
		{Object: map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
			"metadata": map[string]any{
				"name":        metricsVersion + "." + metricsGroup,
				"annotations": map[string]any{"carrick/stand-in": "serves discovery and empty lists, without metrics"},
			},
			"spec": map[string]any{
				"group": metricsGroup, "version": metricsVersion,
				"groupPriorityMinimum": int64(100), "versionPriority": int64(100),
				"caBundle": base64.StdEncoding.EncodeToString(m.authority),
				"service":  map[string]any{"name": metricsService, "namespace": metricsSpace, "port": int64(443)},
			},
		}},
	}
}

func tlsConfig(authority *pki.Authority, frontProxy []byte) (*tls.Config, error) {
	pair, err := authority.Server(metricsService+"."+metricsSpace+".svc", metricsService+"."+metricsSpace)
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, err
	}
	proxies := x509.NewCertPool()
	if !proxies.AppendCertsFromPEM(frontProxy) {
		return nil, errors.New("the front-proxy CA contains no certificate")
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    proxies,
	}, nil
}

func ownAddress() (net.IP, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	for _, a := range addresses {
		if network, ok := a.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP, nil
		}
	}
	return nil, ErrNoAddress
}

func answerMetrics(w http.ResponseWriter, r *http.Request) {
	version := metav1.GroupVersionForDiscovery{GroupVersion: metricsGroup + "/" + metricsVersion, Version: metricsVersion}
	group := metav1.APIGroup{
		TypeMeta:         metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"},
		Name:             metricsGroup,
		Versions:         []metav1.GroupVersionForDiscovery{version},
		PreferredVersion: version,
	}
	inNamespace, _ := path.Match(metricsPath+"/namespaces/*/pods", r.URL.Path)
	switch {
	case r.Method != http.MethodGet:
		refuse(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed)
	case r.URL.Path == "/apis":
		write(w, http.StatusOK, metav1.APIGroupList{
			TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
			Groups:   []metav1.APIGroup{group},
		})
	case r.URL.Path == "/apis/"+metricsGroup:
		write(w, http.StatusOK, group)
	case r.URL.Path == metricsPath:
		write(w, http.StatusOK, metricsResources())
	case r.URL.Path == metricsPath+"/nodes":
		writeEmpty(w, "NodeMetricsList")
	case r.URL.Path == metricsPath+"/pods", inNamespace:
		writeEmpty(w, "PodMetricsList")
	default:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	}
}

func metricsResources() metav1.APIResourceList {
	verbs := metav1.Verbs{"get", "list"}
	return metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: metricsGroup + "/" + metricsVersion,
		APIResources: []metav1.APIResource{
			{Name: "nodes", Kind: "NodeMetrics", Verbs: verbs},
			{Name: "pods", Kind: "PodMetrics", Namespaced: true, Verbs: verbs},
		},
	}
}

func writeEmpty(w http.ResponseWriter, kind string) {
	write(w, http.StatusOK, map[string]any{
		"kind": kind, "apiVersion": metricsGroup + "/" + metricsVersion,
		"metadata": map[string]any{}, "items": []any{},
	})
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	write(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: reason, Code: int32(code),
		Message: fmt.Sprintf("the metrics stand-in does not serve %s", reason),
	})
}

func write(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
