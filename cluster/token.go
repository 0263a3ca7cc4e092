package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster/masked"
)

// TokenOptions are the options of RequestToken.
type TokenOptions struct {
	Audiences []string      // nil: the audience of the API server
	Expires   time.Duration // lifetime, at least 10 min; 0: the API server's default. The server can grant less or more
	// Bound is a Pod, Secret or Node to which the token is bound, in the ServiceAccount's namespace; nil means none.
	Bound *authenticationv1.BoundObjectReference
}

// RequestToken requests a token for a ServiceAccount and returns the token and its expiry. The only way to revoke the
// token earlier is to delete the ServiceAccount or the object to which the token is bound.
func (c *Cluster) RequestToken(
	ctx context.Context, namespace, serviceAccount string, o TokenOptions,
) (masked.Value, time.Time, error) {
	at := location{
		gvr: schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, namespace: namespace,
		name: serviceAccount, subresource: "token",
	}
	doing := "request a token for " + at.String()
	ask := authenticationv1.TokenRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "TokenRequest"},
		Spec:     authenticationv1.TokenRequestSpec{Audiences: o.Audiences, BoundObjectRef: o.Bound},
	}
	if o.Expires > 0 {
		seconds := int64(math.Ceil(o.Expires.Seconds()))
		ask.Spec.ExpirationSeconds = &seconds
	}
	body, err := json.Marshal(ask)
	if err != nil {
		return masked.Value{}, time.Time{}, fmt.Errorf("%s: %w", doing, err)
	}
	data, err := c.raw(ctx, doing, request{verb: http.MethodPost, at: at, body: body, contentType: jsonType})
	if err != nil {
		return masked.Value{}, time.Time{}, err
	}
	var answer authenticationv1.TokenRequest
	if err := json.Unmarshal(data, &answer); err != nil || answer.Status.Token == "" {
		return masked.Value{}, time.Time{}, failed(ctx, doing, errors.New("the answer contains no token"))
	}
	return masked.New(answer.Status.Token), answer.Status.ExpirationTimestamp.Time, nil
}
