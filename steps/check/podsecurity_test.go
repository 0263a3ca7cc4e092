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

// What an API server says of an object is a refusal; what it says of who asks is
// none, and neither is that what an answer hangs on could not be read.
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
