// A fake of Prometheus (prometheus/prometheus). It answers only the instant queries that a namespace reaper sends. Its
// only metric is kube_pod_container_info. It returns the number of containers, in total or by namespace.

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

// Prometheus is a running fake Prometheus.
type Prometheus struct {
	address net.IP
	port    int
	server  *http.Server
}

// StartPrometheus listens on a non-loopback address of this machine until Close is called. count returns the number of
// containers by namespace.
func StartPrometheus(count func() (map[string]int, error)) (*Prometheus, error) {
	address, err := ownAddress()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(address.String(), "0"))
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answerQuery(w, r, count)
		}),
	}
	go func() { _ = server.Serve(listener) }()
	return &Prometheus{address: address, port: listener.Addr().(*net.TCPAddr).Port, server: server}, nil
}

// Close stops the server.
func (p *Prometheus) Close() { _ = p.server.Close() }

// Address returns the server's URL for pods in the cluster.
func (*Prometheus) Address() string {
	return fmt.Sprintf("http://%s.%s:%d", prometheusService, prometheusSpace, prometheusPort)
}

// Objects returns a Service for the server and the objects that the Service requires.
func (p *Prometheus) Objects() []*unstructured.Unstructured {
	labels := map[string]any{"app.kubernetes.io/name": prometheusService}
	at := map[string]any{
		"name": prometheusService, "namespace": prometheusSpace,
		"labels":      labels,
		"annotations": map[string]any{"carrick/stand-in": "counts the containers of the cluster, without other metrics"},
	}
	return []*unstructured.Unstructured{
		{
			Object: map[string]any{
				"apiVersion": "v1", "kind": "Namespace",
				"metadata": map[string]any{
					"name": prometheusSpace, "labels": map[string]any{"kubernetes.io/metadata.name": prometheusSpace},
				},
			},
		},
		{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": at,
			"spec": map[string]any{"ports": []any{
				map[string]any{"name": "http", "port": int64(prometheusPort), "protocol": "TCP", "targetPort": int64(p.port)},
			}},
		}},
		// The API server's proxy connects only to pods. Nothing runs in this pod. Its address is this machine's.
		{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"name": prometheusService + "-0", "namespace": prometheusSpace, "labels": labels},
			"spec": map[string]any{
				"schedulerName": "stand-in",
				"containers":    []any{map[string]any{"name": prometheusService, "image": "quay.io/prometheus/prometheus:v3"}},
			},
			"status": map[string]any{
				"phase": "Running", "podIP": p.address.String(), "podIPs": []any{map[string]any{"ip": p.address.String()}},
				"conditions": []any{
					map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "ContainersReady", "status": "True"},
				},
			},
		}},
		{Object: map[string]any{
			"apiVersion": "v1", "kind": "Endpoints",
			"metadata": map[string]any{"name": prometheusService, "namespace": prometheusSpace},
			"subsets": []any{map[string]any{
				"addresses": []any{map[string]any{
					"ip":        p.address.String(),
					"targetRef": map[string]any{"kind": "Pod", "namespace": prometheusSpace, "name": prometheusService + "-0"},
				}},
				"ports": []any{map[string]any{"name": "http", "port": int64(p.port), "protocol": "TCP"}},
			}},
		}},
	}
}

func answerQuery(w http.ResponseWriter, r *http.Request, count func() (map[string]int, error)) {
	query := r.FormValue("query")
	if r.URL.Path != "/api/v1/query" {
		http.NotFound(w, r)
		return
	}
	if query == "" {
		write(
			w, http.StatusBadRequest,
			map[string]any{"status": "error", "errorType": "bad_data", "error": "invalid parameter \"query\""},
		)
		return
	}
	result := []any{}
	if strings.Contains(query, "kube_pod_container_info") {
		n, err := count()
		if err != nil {
			write(
				w, http.StatusUnprocessableEntity,
				map[string]any{"status": "error", "errorType": "execution", "error": "stand-in: " + err.Error()},
			)
			return
		}
		all := 0
		for namespace, of := range n {
			all += of
			if strings.Contains(query, "by (namespace") {
				result = append(result, sample(map[string]any{"namespace": namespace}, of))
			}
		}
		if all > 0 && len(result) == 0 {
			result = append(result, sample(map[string]any{}, all))
		}
	}
	write(
		w, http.StatusOK,
		map[string]any{"status": "success", "data": map[string]any{"resultType": "vector", "result": result}},
	)
}

func sample(metric map[string]any, n int) map[string]any {
	return map[string]any{"metric": metric, "value": []any{time.Now().Unix(), fmt.Sprint(n)}}
}
