package renku

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

// certMargin is the minimum remaining validity of the sessions' certificate.
const certMargin = 14 * 24 * time.Hour

func storageChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "storage-class", Title: "Sessions have a usable StorageClass", On: steps.Remote, Needs: []string{"signed-in"},
			Why: "Each session needs a volume. A StorageClass that binds immediately can place the volume in a zone where no " +
				"node has capacity.",
			Run: storageClass,
		},
		{
			Name: "ingress-class", Title: "Sessions have a usable IngressClass", On: steps.Remote, Needs: []string{"signed-in"},
			Why: "Each session has an Ingress, and without an IngressClass no controller serves the Ingress.",
			Run: ingressClassServed,
		},
		{
			Name: "tls-secret", Title: "The TLS Secret matches the session host", On: steps.Remote,
			Needs: []string{"namespace"},
			Why:   "With another certificate browsers reject sessions. The operator never creates or adopts this Secret.",
			Run:   sessionCertificate,
		},
	}
}

func storageClass(ctx context.Context, e steps.Env) steps.Result {
	classes, err := check.List[storagev1.StorageClass](ctx, e.Cluster, check.StorageClasses, "", cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	name := e.Answers.Text("sessions.storage-class")
	var found *storagev1.StorageClass
	defaults := defaultsOf(classes, defaultStorage)
	var all []string
	for _, c := range classes {
		all = append(all, c.Name)
		if c.Name == name || (name == "" && c.Annotations[defaultStorage] == "true") {
			found = c
		}
	}
	switch {
	case len(all) == 0:
		return steps.Failed("the cluster has no StorageClass", "install a storage driver, then set sessions.storage-class")
	case name != "" && found == nil:
		return steps.Failed(
			fmt.Sprintf("StorageClass %s does not exist (existing: %v)", name, all),
			"set sessions.storage-class to one of the existing StorageClasses",
		)
	case found == nil:
		return steps.Failed(
			fmt.Sprintf("no StorageClass is the default (existing: %v)", all),
			"set sessions.storage-class to one of the existing StorageClasses",
		)
	case name == "" && len(defaults) > 1:
		found, fix := severalDefaults(e, "storageclass", defaultStorage, newestFirst(defaults))
		return steps.Failed(found, "set sessions.storage-class to one of these StorageClasses\n"+fix)
	case len(defaults) > 1 && !e.Answered("sessions.storage-class"):
		found, fix := severalDefaults(e, "storageclass", defaultStorage, newestFirst(defaults))
		return steps.Warned(found+"; sessions use "+name, "set sessions.storage-class to "+name+"\n"+fix+
			"    # PersistentVolumeClaims without a StorageClass still get the newest default")
	}
	if found.VolumeBindingMode == nil || *found.VolumeBindingMode == storagev1.VolumeBindingImmediate {
		zones, err := zones(ctx, e)
		if err != nil {
			return steps.Errored(err)
		}
		if zones > 1 {
			return steps.Warned(
				fmt.Sprintf(
					"StorageClass %s binds volumes immediately, in one of %d zones, before the session is scheduled", found.Name,
					zones,
				),
				"use a StorageClass with volumeBindingMode WaitForFirstConsumer",
			)
		}
	}
	return steps.Passed("StorageClass %s, provisioned by %s", found.Name, found.Provisioner)
}

func zones(ctx context.Context, e steps.Env) (int, error) {
	nodes, err := check.List[corev1.Node](ctx, e.Cluster, check.Nodes, "", cluster.Selector{})
	if err != nil {
		return 0, err
	}
	seen := map[string]bool{}
	for _, n := range nodes {
		if z := n.Labels[corev1.LabelTopologyZone]; z != "" {
			seen[z] = true
		}
	}
	return len(seen), nil
}

func ingressClassServed(ctx context.Context, e steps.Env) steps.Result {
	classes, err := check.List[networkingv1.IngressClass](ctx, e.Cluster, check.IngressClasses, "", cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	name := e.Answers.Text("sessions.ingress-class")
	defaults := defaultsOf(classes, defaultIngress)
	found := defaults
	var all []string
	for _, c := range classes {
		all = append(all, c.Name)
		if c.Name == name {
			found = []*networkingv1.IngressClass{c}
		}
	}
	one := "set sessions.ingress-class to one of the existing IngressClasses"
	switch {
	case len(all) == 0:
		return steps.Failed(
			"the cluster has no IngressClass", "install an ingress controller, then set sessions.ingress-class",
		)
	case name != "" && !slices.Contains(all, name):
		return steps.Failed(fmt.Sprintf("IngressClass %s does not exist (existing: %v)", name, all), one)
	case len(found) == 0:
		const said = "no IngressClass is the default (existing: %v)"
		return steps.Failed(fmt.Sprintf(said, all), one+", or install an ingress controller")
	case len(found) > 1: // with several defaults, the API server rejects an Ingress that names no IngressClass
		return steps.Failed(severalDefaults(e, "ingressclass", defaultIngress, defaults))
	case len(defaults) > 1 && !e.Answered("sessions.ingress-class"):
		said, fix := severalDefaults(e, "ingressclass", defaultIngress, defaults)
		return steps.Warned(said+"; sessions use "+name, fix)
	}
	return steps.Passed("IngressClass %s, served by %s", found[0].Name, found[0].Spec.Controller)
}

func sessionCertificate(ctx context.Context, e steps.Env) steps.Result {
	name := e.Answers.Text("sessions.tls-secret")
	if name == "" {
		return steps.Skipped(
			"sessions.tls-secret is empty, so sessions use the default certificate of the ingress controller",
		)
	}
	ns, host := sessionsNamespace(e), e.Answers.Text("sessions.host")
	fix := e.Kubectl() + " -n " + ns + " create secret tls " + name +
		" --cert=FULLCHAIN.pem --key=KEY.pem    # or a cert-manager Certificate for " +
		cmp.Or(host, "the session host")
	s, err := e.Cluster.Secret(ctx, ns, name, "tls.crt", "tls.key")
	if err != nil {
		return check.Missing(err, "Secret "+ns+"/"+name, fix)
	}
	return check.TLSSecret(s, host, certMargin, time.Now(), fix)
}
