package renku

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

// releaseFacts are what the local release says of itself. This is a small
// version: it does not read the Helm release.
func releaseFacts() []steps.Fact {
	unread := func(what string) func(context.Context, steps.Env) (any, error) {
		return func(context.Context, steps.Env) (any, error) {
			return nil, steps.Absent("%s is not known: the Helm release is not read by this version", what)
		}
	}
	return []steps.Fact{
		{Name: "renku-domain", Title: "Renku's domain", On: steps.Local, Learn: unread("Renku's domain")},
		{Name: "redirect-host", Title: "the sessions' host that Renku's login lets in", On: steps.Local, Learn: unread("that host")},
		{Name: "redirect-port", Title: "the sessions' port that Renku's login lets in", On: steps.Local, Learn: unread("that port")},
		{Name: "renku-ca", Title: "the CA of Renku's own addresses", On: steps.Local, Learn: renkuCA},
		{Name: "kubeconfigs-secret", Title: "the Secret with the remote clusters' kubeconfigs", On: steps.Local, Learn: kubeconfigsSecret},
	}
}

func renkuCA(ctx context.Context, e steps.Env) (any, error) {
	s, err := e.Cluster.Secret(ctx, e.Answers.Text("renku.namespace"), "renku-ca", "ca.crt")
	if apierrors.IsNotFound(err) {
		return nil, steps.Absent("there is no Secret renku-ca")
	}
	if err != nil {
		return nil, err
	}
	return s.Data["ca.crt"].Reveal(), nil // certificates are public
}

// kubeconfigsSecret is what the data service really mounts
// (SwissDataScienceCenter/renku helm-chart/renku/templates/data-service/deployment.yaml).
func kubeconfigsSecret(ctx context.Context, e steps.Env) (any, error) {
	all, err := check.List[appsv1.Deployment](ctx, e.Cluster, check.Deployments, e.Answers.Text("renku.namespace"), cluster.Selector{Labels: "app=renku-data-service"})
	if err != nil {
		return nil, err
	}
	for _, d := range all {
		for _, v := range d.Spec.Template.Spec.Volumes {
			if v.Name == "remote-cluster-kubeconfigs" && v.Secret != nil {
				return v.Secret.SecretName, nil
			}
		}
	}
	return nil, steps.Absent("no Deployment labelled app=renku-data-service mounts a Secret of kubeconfigs")
}
