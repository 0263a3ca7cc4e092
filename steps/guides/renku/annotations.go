package renku

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"carrick/steps"
	"carrick/steps/check"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
)

// nginxController is the default controller name of ingress-nginx. Only ingress-nginx reads
// annotations with nginxPrefix.
const (
	nginxController = "k8s.io/ingress-nginx"
	nginxPrefix     = "nginx.ingress.kubernetes.io/"
)

const (
	bodySize      = nginxPrefix + "proxy-body-size"
	bufferSize    = nginxPrefix + "proxy-buffer-size"
	buffering     = nginxPrefix + "proxy-request-buffering"
	enableCORS    = nginxPrefix + "enable-cors"
	corsOrigin    = nginxPrefix + "cors-allow-origin"
	corsLogin     = nginxPrefix + "cors-allow-credentials"
	corsMethods   = nginxPrefix + "cors-allow-methods"
	corsHeaders   = nginxPrefix + "cors-allow-headers"
	configSnippet = nginxPrefix + "configuration-snippet"
)

// isNginx reports whether the controller is ingress-nginx. It searches for a substring, because a
// second ingress-nginx in a cluster needs another controller name. The ingress-nginx documentation
// suggests names that contain "ingress-nginx".
func isNginx(controller string) bool { return strings.Contains(controller, "ingress-nginx") }

// uploads contains the annotations that Renku's chart sets for local sessions
// (SwissDataScienceCenter/renku helm-chart/renku/values.yaml,
// notebooks.sessionIngress.annotations). Sessions on a remote cluster do not inherit them.
var uploads = map[string]string{bodySize: "0", bufferSize: "8k", buffering: "off"}

// allowedHeaders lists the request headers that a page in a frame is allowed to send. The published
// guide sets an nginx variable here, which ingress-nginx rejects.
const allowedHeaders = "Accept, Authorization, Cache-Control, Content-Type, DNT, If-Modified-Since, Keep-Alive, " +
	"Origin, Range, User-Agent, X-Requested-With, X-XSRFToken"

func framed(e steps.Env) bool { return e.Answers.Bool("sessions.framed") }

// framePolicy returns a Content-Security-Policy that allows only pages from origin and from the
// session itself to embed the session.
func framePolicy(origin string) string { return "frame-ancestors 'self' " + origin }

// generated returns the annotations that carrick sets. The map is empty unless controller is
// ingress-nginx.
func generated(controller, origin string, framed, snippets bool) map[string]any {
	out := map[string]any{}
	if !isNginx(controller) {
		return out
	}
	for k, v := range uploads {
		out[k] = v
	}
	if !framed {
		return out
	}
	out[enableCORS], out[corsOrigin], out[corsLogin] = "true", origin, "true"
	out[corsMethods], out[corsHeaders] = "GET, PUT, POST, DELETE, PATCH, OPTIONS", allowedHeaders
	if snippets {
		out[configSnippet] = `more_set_headers "Content-Security-Policy: ` + framePolicy(origin) + "\";\n"
	}
	return out
}

// sessionAnnotations returns the annotations of each session's Ingress. Entries in
// sessions.annotations override the generated annotations. An entry with an empty value removes the
// annotation.
func sessionAnnotations(ctx context.Context, e steps.Env) (any, error) {
	controller, err := e.Own.Text("ingress-controller")
	if err != nil {
		return nil, err
	}
	snippets := false
	if framed(e) && isNginx(controller) {
		state, err := nginxSnippets(ctx, e)
		if err != nil && !steps.IsAbsent(err) {
			return nil, err
		}
		snippets = state.allowed
	}
	out := generated(controller, renkuOrigin(e), framed(e), snippets)
	for _, typed := range e.Answers.List("sessions.annotations") {
		key, value, _ := strings.Cut(typed, "=")
		if out[key] = value; value == "" {
			delete(out, key)
		}
	}
	return out, nil
}

func checkAnnotation(v string) error {
	key, _, ok := strings.Cut(v, "=")
	if strings.HasPrefix(v, "map[") { // the link file contains a mapping instead of a string
		return errors.New("annotations must be strings: write - \"key=value\" with quotes, not key: value")
	}
	if !ok {
		return fmt.Errorf(
			"%q is not key=value; put values with spaces or commas into the link file, one list item per annotation", v,
		)
	}
	if problems := validation.IsQualifiedName(strings.ToLower(key)); len(problems) > 0 {
		return fmt.Errorf(
			"%q is not a valid annotation name: use letters, digits, -, _ and ., optionally after a host name and /", key,
		)
	}
	return nil
}

func ingressController(ctx context.Context, e steps.Env) (any, error) {
	name := e.Answers.Text("sessions.ingress-class")
	if name == "" {
		return nil, steps.Absent("sessions.ingress-class is not set, and the cluster has no default IngressClass")
	}
	class, err := check.Get[networkingv1.IngressClass](ctx, e.Cluster, check.IngressClasses, "", name)
	if apierrors.IsNotFound(err) {
		return nil, steps.Absent("IngressClass %s does not exist", name)
	}
	if err != nil {
		return nil, err
	}
	return class.Spec.Controller, nil
}

// others explains how to configure the frame policy and CORS with a controller other than
// ingress-nginx.
func others(controller, origin string) string {
	csp, cors := `Content-Security-Policy "`+framePolicy(origin)+`"`, "CORS for "+origin+" with credentials"
	switch {
	case strings.Contains(controller, "traefik"):
		return "create a Middleware with headers.contentSecurityPolicy \"" + framePolicy(origin) +
			"\", accessControlAllowOriginList [" + origin +
			"] and accessControlAllowCredentials true; then set sessions.annotations to " +
			"traefik.ingress.kubernetes.io/router.middlewares=NAMESPACE-NAME@kubernetescrd"
	case strings.Contains(controller, "haproxy"):
		return "set sessions.annotations to haproxy.org/response-set-header=" + csp +
			", haproxy.org/cors-enable=true and haproxy.org/cors-allow-origin=" + origin
	case strings.Contains(controller, "contour"):
		return "Contour does not set response headers for an Ingress: add a global responseHeadersPolicy to its " +
			"ContourConfiguration with " + csp + " and " + cors
	}
	return "set on every session's route: " + csp + ", and " + cors +
		" (Gateway API: a ResponseHeaderModifier filter; others: see the controller's documentation)"
}
