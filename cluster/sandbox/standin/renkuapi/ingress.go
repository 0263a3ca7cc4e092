// The ingress controller for sessions on the remote cluster, at session_host and session_path. It is not part of Renku.
// It imitates ingress-nginx, whose source was not read. It accepts only TLS, and only paths of Ingresses on the remote
// cluster. Every path returns the same page, which says that it is a stand-in. All hosts have the same default
// certificate.

package renkuapi

import (
	"context"
	"html"
	"net"
	"net/http"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ingress serves the sessions. If remote is nil, there are no sessions.
type ingress struct{ remote *connection }

func (i *ingress) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, err := i.route(r.Context(), hostOf(r.Host), r.URL.Path)
	switch {
	case err != nil:
		page(w, http.StatusServiceUnavailable, "<p>The ingress cannot read its Ingress objects.</p>")
	case name == "":
		page(w, http.StatusNotFound, "<p>default backend - 404</p>")
	default:
		page(w, http.StatusOK, "<p>A session would respond here: the Ingress "+html.EscapeString(name)+" routes to it.</p>")
	}
}

func hostOf(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return hostport
}

// route returns NAMESPACE/NAME of the Ingress for host and path, or "".
func (i *ingress) route(ctx context.Context, host, path string) (string, error) {
	if i.remote == nil {
		return "", nil
	}
	client, err := i.remote.client()
	if err != nil {
		return "", err
	}
	list, err := client.NetworkingV1().Ingresses(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	for _, object := range list.Items {
		for _, rule := range object.Spec.Rules {
			if (rule.Host == "" || rule.Host == host) && leads(rule, path) {
				return object.Namespace + "/" + object.Name, nil
			}
		}
	}
	return "", nil
}

func leads(rule networkingv1.IngressRule, path string) bool {
	if rule.HTTP == nil {
		return false
	}
	for _, p := range rule.HTTP.Paths {
		prefix := strings.TrimSuffix(p.Path, "/")
		exact := p.PathType != nil && *p.PathType == networkingv1.PathTypeExact
		if path == p.Path || !exact && (path == prefix || strings.HasPrefix(path, prefix+"/")) {
			return true
		}
	}
	return false
}
