package failure

import (
	"errors"
	"regexp"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster/clean"
)

// Conflict is a conflict of server-side apply: a field that another field manager owns.
type Conflict struct {
	Manager string // "kubectl-client-side-apply"
	Field   string // ".spec.replicas"
}

// conflictMessage matches the API server's message about a conflict (kubernetes/kubernetes
// staging/src/k8s.io/apimachinery/pkg/util/managedfields/internal/conflict.go).
var conflictMessage = regexp.MustCompile(`^conflict with ("(?:[^"\\]|\\.)*")`)

// Conflicts returns the fields in a conflict of server-side apply, with their managers. It returns nil for any other
// error.
func Conflicts(err error) []Conflict {
	var status apierrors.APIStatus
	if !apierrors.IsConflict(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var out []Conflict
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		out = append(out, Conflict{Manager: clean.Text(managerOf(cause.Message)), Field: clean.Text(cause.Field)})
	}
	return out
}

func managerOf(message string) string {
	found := conflictMessage.FindStringSubmatch(message)
	if found == nil {
		return message
	}
	name, err := strconv.Unquote(found[1])
	if err != nil {
		return found[1]
	}
	return name
}
