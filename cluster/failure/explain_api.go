package failure

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster/clean"
	"carrick/cluster/permission"
)

// forbiddenMessage and forbiddenName match RBAC's message (kubernetes/kubernetes
// staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go).
var (
	forbiddenMessage = regexp.MustCompile(
		`User "([^"]*)" cannot (\S+) resource "([^"]*)" in API group "([^"]*)"(?: in the namespace "([^"]*)")?`,
	)
	forbiddenName = regexp.MustCompile(`^\S+ "([^"]+)" is forbidden`)
	forbiddenPath = regexp.MustCompile(`User "([^"]*)" cannot (\S+) path "([^"]*)"`)
)

// explainAPI explains an error from the API server.
func explainAPI(err error) string {
	var api apierrors.APIStatus
	if !errors.As(err, &api) {
		return ""
	}
	status := api.Status()
	switch status.Code {
	case http.StatusUnauthorized:
		return "the API server rejects the credentials: the token or client certificate is wrong, revoked or expired"
	case http.StatusForbidden:
		return explainForbidden(status)
	case http.StatusNotFound:
		return explainNotFound(status)
	case http.StatusConflict:
		return explainConflict(err, status)
	case http.StatusGone:
		return "the API server no longer has the requested version: read the object again"
	case http.StatusRequestEntityTooLarge:
		return "the object is too large for the API server (an object can have about 1.5 MiB)"
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		return explainInvalidObject(status)
	case http.StatusTooManyRequests:
		return "the API server is overloaded, or a PodDisruptionBudget blocks the eviction: try again later"
	case http.StatusMethodNotAllowed:
		return "the API server does not support this request for this kind" + said(status)
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return fmt.Sprintf(
			"the API server or its backend is not available at the moment (%d)%s", status.Code, said(status),
		)
	}
	if status.Code >= http.StatusInternalServerError {
		return fmt.Sprintf("the API server has an internal error (%d)%s", status.Code, said(status))
	}
	return ""
}

func said(status metav1.Status) string {
	if status.Message == "" {
		return ""
	}
	return ": " + status.Message
}

func explainForbidden(status metav1.Status) string {
	if who, right, ok := forbidden(status); ok {
		return fmt.Sprintf("%s cannot %s", who, right)
	}
	return "the cluster rejects the request" + said(status)
}

// forbidden returns the user and the missing permission in RBAC's message.
func forbidden(status metav1.Status) (who string, right permission.Rule, ok bool) {
	if m := forbiddenMessage.FindStringSubmatch(status.Message); m != nil {
		resource, sub, _ := strings.Cut(m[3], "/")
		right = permission.Rule{Verb: m[2], Group: m[4], Resource: resource, Subresource: sub, Namespace: m[5]}
		if name := forbiddenName.FindStringSubmatch(status.Message); name != nil {
			right.Name = name[1]
		}
		return m[1], right, true
	}
	if m := forbiddenPath.FindStringSubmatch(status.Message); m != nil {
		return m[1], permission.Rule{Verb: m[2], Path: m[3]}, true
	}
	return "", permission.Rule{}, false
}

// Refused returns the missing permissions that an error from the API server names. If a read was refused, it returns
// all permissions that a tracked read requires. It returns nil for any other error.
func Refused(err error) []permission.Rule {
	var api apierrors.APIStatus
	if !errors.As(err, &api) || api.Status().Code != http.StatusForbidden {
		return nil
	}
	_, right, ok := forbidden(api.Status())
	if !ok {
		return nil
	}
	if !slices.Contains(permission.Reading, right.Verb) || right.Path != "" {
		return []permission.Rule{right}
	}
	return permission.ToRead(right)
}

func explainNotFound(status metav1.Status) string {
	if status.Details != nil && status.Details.Name != "" {
		return fmt.Sprintf("%s %q does not exist", thing(status.Details), status.Details.Name)
	}
	return "the object does not exist, or the cluster does not serve its kind"
}

func thing(d *metav1.StatusDetails) string {
	if d.Group == "" {
		return d.Kind
	}
	return d.Kind + "." + d.Group
}

func explainConflict(err error, status metav1.Status) string {
	conflicts := Conflicts(err)
	if len(conflicts) > 0 {
		owned := make([]string, 0, len(conflicts))
		for _, conflict := range conflicts {
			owned = append(owned, fmt.Sprintf("%s is managed by %q", conflict.Field, conflict.Manager))
		}
		return "another manager owns these fields: " + clean.List(owned)
	}
	if status.Reason == metav1.StatusReasonAlreadyExists {
		if status.Details != nil && status.Details.Name != "" {
			return fmt.Sprintf("%s %q already exists", thing(status.Details), status.Details.Name)
		}
		return "the object already exists"
	}
	return "another user or controller changed the object at the same time" + said(status)
}

func explainInvalidObject(status metav1.Status) string {
	if status.Details == nil || len(status.Details.Causes) == 0 {
		return "the API server rejects the request" + said(status)
	}
	problems := make([]string, 0, len(status.Details.Causes))
	for _, cause := range status.Details.Causes {
		if cause.Field == "" {
			problems = append(problems, cause.Message)
			continue
		}
		problems = append(problems, cause.Field+": "+cause.Message)
	}
	what := "it"
	if status.Details.Name != "" {
		what = fmt.Sprintf("%s %q", thing(status.Details), status.Details.Name)
	}
	return fmt.Sprintf("the API server rejects %s: %s", what, strings.Join(problems, "; "))
}
