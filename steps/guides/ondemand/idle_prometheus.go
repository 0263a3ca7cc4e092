package ondemand

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/masked"
	"carrick/cluster/web"
	"carrick/steps"
	"carrick/steps/check"
)

// samples is the JSON response from Prometheus to a query.
type samples struct {
	Status string `json:"status"`
	Error  string `json:"error"`
	Data   struct {
		Result []struct {
			Metric map[string]string `json:"metric"`
			Value  [2]any            `json:"value"`
		} `json:"result"`
	} `json:"data"`
}

// podQuery uses the same metric as the reaper (OSC/k8-namespace-reaper: main.go).
const podQuery = "count by (namespace, exported_namespace) (kube_pod_container_info)"

// askPrometheus sends podQuery to address. It uses the API server's proxy for an in-cluster address and a direct
// connection for any other address. The returned string describes the connection.
func askPrometheus(ctx context.Context, e steps.Env, address string) (samples, string, error) {
	var out samples
	u, err := url.Parse(address)
	if err != nil {
		return out, "", err
	}
	s, ns, inside, err := prometheusService(ctx, e, address)
	if err != nil {
		return out, "", err
	}
	if inside {
		via := "Service " + ns + "/" + s.Name
		data, err := e.Cluster.Proxied(
			ctx, "services", ns, proxiedName(u, s.Name), proxyPort(u), strings.Trim(u.Path, "/")+"/api/v1/query",
			map[string]string{"query": podQuery},
		)
		if err != nil {
			at, endpointErr := nonPodEndpoint(ctx, e, s, u)
			if at != "" {
				return askDirectly(ctx, at, via+" ("+at+", from this machine)")
			}
			if endpointErr != nil {
				err = endpointErr
			}
			return out, via, err
		}
		if err := json.Unmarshal(data, &out); err != nil {
			return out, via, fmt.Errorf("the response is not from Prometheus: %w", err)
		}
		return out, via, nil
	}
	return askDirectly(ctx, strings.TrimRight(address, "/"), u.Host+", from this machine")
}

// prometheusService returns the Service at address and its namespace. inside is false if address is not in the cluster.
func prometheusService(
	ctx context.Context, e steps.Env, address string,
) (s *corev1.Service, ns string, inside bool, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, "", false, err
	}
	name, rest, _ := strings.Cut(u.Hostname(), ".")
	ns, tail, _ := strings.Cut(rest, ".")
	if tail != "" && !strings.HasPrefix(tail, "svc") {
		return nil, "", false, nil
	}
	s, err = check.Get[corev1.Service](ctx, e.Cluster, check.Services, ns, name)
	if apierrors.IsNotFound(err) && tail == "" {
		return nil, "", false, nil
	}
	return s, ns, err == nil, err
}

func askDirectly(ctx context.Context, address, via string) (out samples, said string, err error) {
	w, err := web.New(address, masked.Value{}, web.Options{})
	if err != nil {
		return out, via, err
	}
	defer w.Close()
	_, err = w.JSON(ctx, http.MethodGet, "/api/v1/query?query="+url.QueryEscape(podQuery), nil, &out)
	return out, via, err
}

// nonPodEndpoint returns the URL of a Service endpoint that is not a pod, or "" if the Service has no such endpoint.
// The API server proxies only to pods, but carrick can query an endpoint outside the cluster from this machine.
func nonPodEndpoint(ctx context.Context, e steps.Env, s *corev1.Service, u *url.URL) (string, error) {
	slices, err := check.List[discoveryv1.EndpointSlice](
		ctx, e.Cluster, check.EndpointSlices, s.Namespace,
		cluster.Selector{Labels: discoveryv1.LabelServiceName + "=" + s.Name},
	)
	if err != nil {
		return "", err
	}
	name := ""
	for _, p := range s.Spec.Ports {
		if strconv.Itoa(int(p.Port)) == proxyPort(u) {
			name = p.Name
		}
	}
	for _, slice := range slices {
		for _, p := range slice.Ports {
			for _, to := range slice.Endpoints {
				if to.TargetRef == nil && len(to.Addresses) > 0 && p.Port != nil && (p.Name == nil || *p.Name == name) {
					return u.Scheme + "://" + net.JoinHostPort(to.Addresses[0], strconv.Itoa(int(*p.Port))) +
						strings.TrimRight(u.Path, "/"), nil
				}
			}
		}
	}
	return "", nil
}

// proxiedName returns name as the API server's proxy expects it. The proxy requires a prefix for https.
func proxiedName(u *url.URL, name string) string {
	if u.Scheme == "https" {
		return "https:" + name
	}
	return name
}

func proxyPort(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
