// A stand-in for Prometheus (prometheus/prometheus), as far as a reaper of
// namespaces asks it: the instant query of its HTTP API. It knows one metric,
// kube_pod_container_info, of which it counts the containers that it is told of.

package standin

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	prometheusSpace   = "monitoring"
	prometheusService = "prometheus"
	prometheusPort    = 9090
)

// Prometheus is a running stand-in.
type Prometheus struct {
	address net.IP
	port    int
	server  *http.Server
}

// StartPrometheus listens on an address of this machine that is not loopback,
// until Close. count is how many containers it knows of.
func StartPrometheus(count func() (int, error)) (*Prometheus, error) {
	address, err := ownAddress()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(address.String(), "0"))
	if err != nil {
		return nil, err
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answerQuery(w, r, count)
	})}
	go func() { _ = server.Serve(listener) }()
	return &Prometheus{address: address, port: listener.Addr().(*net.TCPAddr).Port, server: server}, nil
}

// Close ends the stand-in.
func (p *Prometheus) Close() { _ = p.server.Close() }

// Address is how the cluster's pods name it.
func (*Prometheus) Address() string {
	return fmt.Sprintf("http://%s.%s:%d", prometheusService, prometheusSpace, prometheusPort)
}

// Objects are a Service that leads to it.
func (p *Prometheus) Objects() []*unstructured.Unstructured {
	at := map[string]any{
		"name": prometheusService, "namespace": prometheusSpace,
		"labels":      map[string]any{"app.kubernetes.io/name": "prometheus"},
		"annotations": map[string]any{"carrick/stand-in": "counts the containers of the cluster, knows nothing else"},
	}
	return []*unstructured.Unstructured{
		{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": prometheusSpace, "labels": map[string]any{"kubernetes.io/metadata.name": prometheusSpace}}}},
		{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": at,
			"spec": map[string]any{"ports": []any{map[string]any{"name": "http", "port": int64(prometheusPort), "protocol": "TCP", "targetPort": int64(p.port)}}},
		}},
		{Object: map[string]any{
			"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
			"metadata": map[string]any{"name": prometheusService, "namespace": prometheusSpace, "labels": map[string]any{
				"kubernetes.io/service-name": prometheusService, "endpointslice.kubernetes.io/managed-by": "carrick-sandbox",
			}},
			"addressType": "IPv4",
			"ports":       []any{map[string]any{"name": "http", "port": int64(p.port), "protocol": "TCP"}},
			"endpoints":   []any{map[string]any{"addresses": []any{p.address.String()}}},
		}},
	}
}

func answerQuery(w http.ResponseWriter, r *http.Request, count func() (int, error)) {
	query := r.FormValue("query")
	if r.URL.Path != "/api/v1/query" {
		http.NotFound(w, r)
		return
	}
	if query == "" {
		write(w, http.StatusBadRequest, map[string]any{"status": "error", "errorType": "bad_data", "error": "invalid parameter \"query\""})
		return
	}
	result := []any{}
	if strings.Contains(query, "kube_pod_container_info") {
		n, err := count()
		if err != nil {
			write(w, http.StatusUnprocessableEntity, map[string]any{"status": "error", "errorType": "execution", "error": "stand-in: " + err.Error()})
			return
		}
		if n > 0 {
			result = append(result, map[string]any{"metric": map[string]any{}, "value": []any{time.Now().Unix(), fmt.Sprint(n)}})
		}
	}
	write(w, http.StatusOK, map[string]any{"status": "success", "data": map[string]any{"resultType": "vector", "result": result}})
}
