package check_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/steps/check"
)

// An error about the object is a refusal. An error about the user's permissions is not, and neither is a failed read of
// something that the decision depends on.
func TestRefusal(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	said := apierrors.NewForbidden(pods, "a", errors.New("violates PodSecurity"))
	for name, c := range map[string]struct {
		err  error
		why  string
		does bool
	}{
		"the object": {fmt.Errorf("try Pod a: %w", said), "violates PodSecurity", true},
		"a webhook is away": {
			apierrors.NewInternalError(errors.New("failed calling webhook")), "failed calling webhook", true,
		},
		"nothing": {nil, "", false},
		"who asks": {
			apierrors.NewForbidden(pods, "a", errors.New(`User "x" cannot patch resource "pods"`)), "", false,
		},
		"what it hangs on": {
			&cluster.PremiseError{Err: apierrors.NewForbidden(pods, "", errors.New(`User "x" cannot list resource "pods"`))}, "",
			false,
		},
		"a server that errs": {apierrors.NewInternalError(errors.New("etcd is away")), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if why, does := check.Refusal(c.err); why != c.why || does != c.does {
				t.Errorf("got %q, %v", why, does)
			}
		})
	}
}
