package vsphere

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

// extensionState describes the extension's Deployment.
type extensionState struct {
	*appsv1.Deployment
	program string // byCarrick or byUpstream; "": unknown
	image   string
	class   string   // StorageClass that carrick's program sets
	from    []string // StorageClasses that carrick's program replaces
	follows string   // ClusterRole to which carrick's program binds profiles
}

// theExtension returns the state of the extension's Deployment, or an AbsentError if the Deployment
// does not exist.
func theExtension(ctx context.Context, e steps.Env) (*extensionState, error) {
	d, err := check.Get[appsv1.Deployment](ctx, e.Cluster, check.Deployments, extensionSpace(e), extensionName)
	if apierrors.IsNotFound(err) {
		return nil, steps.Absent("Deployment %s/%s does not exist", extensionSpace(e), extensionName)
	}
	if err != nil {
		return nil, err
	}
	out := &extensionState{Deployment: d}
	for _, c := range d.Spec.Template.Spec.Containers {
		out.read(c)
	}
	return out, nil
}

// read sets the fields of s from c, a container of the Deployment.
func (s *extensionState) read(c corev1.Container) {
	words := slices.Concat(c.Command, c.Args)
	java := slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == "JAVA_OPTIONS" })
	switch {
	case slices.Contains(words, "vsphere-extension"):
		s.program, s.image = byCarrick, c.Image
		for _, w := range words {
			if v, ok := strings.CutPrefix(w, "--class="); ok {
				s.class = v
			}
			if v, ok := strings.CutPrefix(w, "--from="); ok {
				s.from = append(s.from, v)
			}
			if v, ok := strings.CutPrefix(w, "--psp-role="); ok {
				s.follows = v
			}
		}
	case s.program == "" && (java || strings.Contains(c.Image, "vsphere-extensions")):
		s.program, s.image = byUpstream, c.Image
	}
}

// port returns the port on which the extension's pods serve admission reviews.
func (s *extensionState) port() int32 {
	if s.program == byUpstream {
		return upstreamPort
	}
	return carrickPort
}

// keystoreImage is part of the image name of the published guide's init container, which creates
// the keystore (additional/resources.yaml).
const keystoreImage = "sso71-openshift"

// makesKeystore reports whether the Deployment has the published guide's init container, which
// creates the keystore.
func (s *extensionState) makesKeystore() bool {
	return slices.ContainsFunc(
		s.Spec.Template.Spec.InitContainers,
		func(c corev1.Container) bool { return strings.Contains(c.Image, keystoreImage) },
	)
}

// extensionPods returns the extension's pods that are not being deleted.
func extensionPods(ctx context.Context, e steps.Env) ([]*corev1.Pod, error) {
	all, err := check.List[corev1.Pod](
		ctx, e.Cluster, check.Pods, extensionSpace(e), cluster.Selector{Labels: "app=" + extensionName},
	)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }), nil
}

// takeOverFix returns the command that replaces unmanaged objects of the extension with carrick's
// objects.
func takeOverFix(e steps.Env) string { return e.ApplyStep("extension") + " --take-over --replace" }

func adoptProgram(ctx context.Context, e steps.Env) (any, string, error) {
	return adoptedOf(ctx, e, func(s *extensionState) any { return s.program })
}

func adoptExtensionImage(ctx context.Context, e steps.Env) (any, string, error) {
	return adoptedOf(ctx, e, func(s *extensionState) any { return s.image })
}

func adoptReplicas(ctx context.Context, e steps.Env) (any, string, error) {
	return adoptedOf(ctx, e, func(s *extensionState) any {
		if n := s.Spec.Replicas; n != nil && *n >= 1 && *n <= 5 {
			return int(*n)
		}
		return nil
	})
}

// adoptedOf adopts a value from the existing Deployment. The parameter of is a function that extracts the value.
// adoptedOf adopts nothing if the value is nil or "".
func adoptedOf(ctx context.Context, e steps.Env, of func(*extensionState) any) (any, string, error) {
	s, err := theExtension(ctx, e)
	if err != nil {
		return steps.AdoptFact(nil, err, "")
	}
	if v := of(s); v != nil && v != "" {
		return v, "Deployment " + s.Namespace + "/" + s.Name, nil
	}
	return nil, "", nil
}

// adoptExtensionSpace adopts the namespace that the existing webhook calls, or else the published
// guide's namespace if it exists.
func adoptExtensionSpace(ctx context.Context, e steps.Env) (any, string, error) {
	c, err := extensionWebhook(ctx, e)
	if err == nil {
		for _, w := range c.Webhooks {
			if w.ClientConfig.Service != nil {
				return w.ClientConfig.Service.Namespace, "MutatingWebhookConfiguration " + webhookName, nil
			}
		}
	}
	if err != nil && !steps.IsAbsent(err) {
		return nil, "", err
	}
	_, err = e.Cluster.Get(ctx, check.Namespaces, "", extensionName)
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	return extensionName, "the existing namespace", err
}
