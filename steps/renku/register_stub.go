package renku

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/steps"
)

// withStubs adds to a step what other steps of the guide will bring.
func withStubs(s steps.Step) steps.Step {
	s.Ask = append(s.Ask,
		steps.Question{
			Key: "renku.url", Title: "Renku's address", Kind: steps.URL, Opt: true, Help: "With https://, without a path.",
			Default: func(e steps.Env) (any, string) {
				if domain, err := e.Own.Text("renku-domain"); err == nil {
					return "https://" + domain, "Renku's Helm values"
				}
				return nil, ""
			},
		},
		steps.Question{
			Key: "sessions.protocol", Title: "Protocol of the sessions", Kind: steps.Pick, On: steps.Remote, Help: "Browsers ask for https.",
			Of:      []steps.Choice{{Value: "https", Title: "https"}, {Value: "http", Title: "http"}},
			Default: steps.Fixed("https", "recommended"),
		},
		steps.Question{
			Key: "sessions.port", Title: "Port of the sessions", Kind: steps.Port, On: steps.Remote, Help: "Of the ingress.",
			Default: steps.Fixed(443, "the usual port"),
		},
		steps.Question{Key: "sessions.path", Title: "Path of the sessions", Kind: steps.Text, Opt: true, On: steps.Remote, Help: "Before the session's own name. Empty: none."},
		steps.Question{Key: "sessions.annotations", Title: "Annotations of the sessions' Ingress", Kind: steps.Text, Many: true, Opt: true, On: steps.Remote, Help: "key=value, as the ingress controller wants them."},
	)
	s.Facts = append(append(s.Facts, releaseFacts()...), steps.Fact{
		Name: "cluster-id", Title: "the cluster's id in Renku", On: steps.Local,
		Learn: func(ctx context.Context, e steps.Env) (any, error) {
			sec, err := e.Cluster.Secret(ctx, e.Answers.Text("renku.namespace"), e.Answers.Text("secret.name"))
			if err != nil && !apierrors.IsNotFound(err) {
				return nil, err
			}
			if err == nil && sec.Annotations["carrick/cluster-id."+e.Link] != "" {
				return sec.Annotations["carrick/cluster-id."+e.Link], nil
			}
			return nil, steps.Absent("the cluster is not registered in Renku yet")
		},
	})
	return s
}
