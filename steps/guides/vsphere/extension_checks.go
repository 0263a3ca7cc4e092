package vsphere

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

const resourcesSource = page + " (additional/resources.yaml)"

func extensionChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "extension-image", Title: "The extension's image is pinned and can be pulled", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "The published Deployment uses an untagged Docker Hub image and an end-of-life Red Hat SSO 7.1 image, which " +
				"new nodes may be unable to pull.",
			References: []string{resourcesSource}, Run: extensionPulls,
		},
		{
			Name: "extension-ready", Title: "The extension runs", On: steps.Local, Needs: []string{"signed-in"},
			FixedBy: "extension", Timeout: 3 * time.Minute,
			Why: "Without a ready pod, each claim waits for the webhook's timeout and then gets the wrong StorageClass " +
				"or is rejected.",
			References: []string{page}, Run: extensionReady,
		},
		{
			Name: "extension-rights", Title: "The extension has no unneeded permissions", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "The published guide allows every pod of the namespace to use all PodSecurityPolicies and create " +
				"RoleBindings in all namespaces.",
			References: []string{resourcesSource}, Run: extensionModest,
		},
		{
			Name: "extension-token", Title: "The API server accepts the extension's token", On: steps.Local,
			Needs: []string{"extension-ready"},
			Why: "The published program reads its token only at startup. After a year at most the token expires, and new " +
				"profiles are missed.",
			References: []string{
				"https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#bound-service-account-tokens",
				"kubernetes/enhancements: keps/sig-auth/1205-bound-service-account-tokens",
			}, Run: extensionToken,
		},
	}
}

func extensionReady(ctx context.Context, e steps.Env) steps.Result {
	s, err := theExtension(ctx, e)
	if err != nil {
		return check.AbsentFails(err, "")
	}
	if refused := refusedBy(e, s); refused != nil {
		return *refused
	}
	in := extensionSpace(e)
	r := check.Available(ctx, e, in, extensionName, e.Kubectl()+" -n "+in+" describe pods -l app="+extensionName)
	if s.program == byUpstream && runsCarrick(e) && r.Status == steps.Pass {
		return steps.Warned("the extension runs the published program, but extension.program is "+byCarrick, takeOverFix(e))
	}
	return r
}

// refusedBy returns Failed with the reason if the extension's pods are rejected. Otherwise it returns nil.
func refusedBy(e steps.Env, s *extensionState) *steps.Result {
	why := check.ReplicaFailure(s.Deployment)
	if why == "" {
		return nil
	}
	fix := cmp.Or(check.RefusedFix(e.Kubectl(), extensionSpace(e), why),
		takeOverFix(e)+"    # the new pods comply with the pod security level restricted")
	if strings.Contains(why, byPSP) {
		fix = e.ApplyStep("extension") + "    # binds the pods' ServiceAccounts to " + pspRole
	}
	r := steps.Failed(fmt.Sprintf("pods of Deployment %s/%s are rejected: %s", s.Namespace, s.Name, clean.Text(why)), fix)
	return &r
}

// unpulled describes a container whose image has not been pulled. why is the reason.
type unpulled struct{ pod, image, why string }

// waitsForImage returns the first container that waits for its image, or nil if none waits. It checks the init
// containers of each pod first.
func waitsForImage(pods []*corev1.Pod) *unpulled {
	for _, p := range pods {
		for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if w := c.State.Waiting; w != nil && strings.Contains(w.Reason, "Image") {
				return &unpulled{p.Name, clean.Text(c.Image), clean.Text(strings.TrimSpace(w.Reason + " " + w.Message))}
			}
		}
	}
	return nil
}

func extensionPulls(ctx context.Context, e steps.Env) steps.Result {
	s, err := theExtension(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	pods, err := extensionPods(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if u := waitsForImage(pods); u != nil {
		return steps.Failed(fmt.Sprintf("pod %s cannot pull image %s: %s", u.pod, u.image, u.why), pullFix(e, u.image))
	}
	if s.makesKeystore() {
		return steps.Warned(
			fmt.Sprintf(
				"Deployment %s has the published init container of %s, which is end-of-life. cert-manager can write the "+
					"keystore, and carrick needs no keystore",
				s.Name, keystoreImage,
			),
			takeOverFix(e),
		)
	}
	if s.image == "" {
		return steps.Skipped("Deployment %s/%s runs another program", s.Namespace, s.Name)
	}
	if !pinned(s.image) {
		return steps.Warned(
			fmt.Sprintf("image %s has neither a fixed tag nor a digest, so its content can change", clean.Text(s.image)),
			answer(e, "extension.image", "NAME:TAG or NAME@sha256:DIGEST")+", then: "+e.ApplyStep("extension"),
		)
	}
	return steps.Passed("%s", clean.Text(s.image))
}

func pullFix(e steps.Env, image string) string {
	switch {
	case strings.Contains(image, keystoreImage):
		return takeOverFix(e) + "    # removes that init container"
	case strings.Contains(image, "keeyzar"):
		return "copy the image to your registry while Docker Hub still has it, and " +
			answer(e, "extension.image", "the copy") +
			"; or " + answer(e, "extension.program", byCarrick)
	}
	return "make image IMAGE=" + image + "    # pushes carrick's image; for another image, " +
		answer(e, "extension.image", "its name")
}

// pinned reports whether an image has a digest or a tag other than latest, so that every pull
// should return the same image.
func pinned(image string) bool {
	_, tag, has := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return strings.Contains(image, "@sha256:") || (has && tag != "latest")
}

func extensionModest(ctx context.Context, e steps.Env) steps.Result {
	all, err := check.List[rbacv1.ClusterRoleBinding](ctx, e.Cluster, check.ClusterRoleBindings, "", cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	var wide []string
	fix := ""
	for _, b := range all {
		for _, who := range b.Subjects {
			if who.Kind != rbacv1.ServiceAccountKind || who.Namespace != extensionSpace(e) ||
				(who.Name == extensionName && strings.HasPrefix(b.RoleRef.Name, extensionName)) {
				continue
			}
			wide = append(
				wide,
				fmt.Sprintf(
					"ServiceAccount %s is bound to ClusterRole %s by ClusterRoleBinding %s", clean.Text(who.Name),
					clean.Text(b.RoleRef.Name), b.Name,
				),
			)
			if fix == "" {
				fix = fmt.Sprintf("%s delete clusterrolebinding %s", e.Kubectl(), steps.Quoted(b.Name))
			}
		}
	}
	if len(wide) > 0 {
		s, err := theExtension(ctx, e)
		if err == nil && s.program == byUpstream && runsCarrick(e) {
			fix = takeOverFix(e) + " && " + fix
		}
		return steps.Warned("in namespace "+extensionSpace(e)+", "+check.Some(wide), fix)
	}
	return steps.Passed(
		"no ServiceAccount of namespace %s has cluster-wide permissions beyond the extension's own role", extensionSpace(e),
	)
}

const (
	// podTokenLife is how long the API server accepts a pod's token that is not renewed
	// (kubernetes/kubernetes: pkg/serviceaccount, ExpirationExtensionSeconds).
	podTokenLife = 365 * 24 * time.Hour
	// often is the number of restarts above which a pod is reported.
	often = 5
)

func extensionToken(ctx context.Context, e steps.Env) steps.Result {
	s, err := theExtension(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if s.program != byUpstream && !followsProfiles(e) {
		return steps.Skipped("the extension does not call the API server and has no token")
	}
	pods, err := extensionPods(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	restart := e.Kubectl() + " -n " + s.Namespace + " rollout restart deployment " + s.Name
	looked, again := 0, time.Time{}
	for _, p := range pods {
		if !hasStarted(p) {
			continue
		}
		looked++
		log, err := check.PodLog(ctx, e.Cluster, p, p.Spec.Containers[0].Name, 500, 30*time.Second)
		if err != nil {
			return steps.Errored(err)
		}
		if line := refusedToken(log); line != "" {
			return steps.Failed(fmt.Sprintf("pod %s logs that its token was rejected: %s", p.Name, line), restart)
		}
		if n := restarts(p); n > often {
			return steps.Warned(
				fmt.Sprintf("pod %s has restarted %d times", p.Name, n),
				e.Kubectl()+" -n "+p.Namespace+" logs "+p.Name+" --previous",
			)
		}
		if ends := p.CreationTimestamp.Add(podTokenLife); s.program == byUpstream {
			if time.Until(ends) < check.Month {
				return steps.Warned(
					fmt.Sprintf(
						"pod %s has run since %s and reads its token only at startup. The API server accepts that token until %s", p.Name,
						p.CreationTimestamp.UTC().Format(time.DateOnly), ends.UTC().Format(time.DateOnly),
					),
					restart,
				)
			}
			again = ends.Add(-check.Month)
		}
	}
	if looked == 0 {
		return steps.Skipped("no pod of the extension has started")
	}
	r := steps.Passed("the logs of %s report no rejected token", steps.Plural(looked, "pod"))
	r.Again = again
	return r
}

// refusedToken returns the last log line that reports a rejected token, or "". The fabric8 client
// logs "Unauthorized! Token may have expired!". Other clients log the API server's message.
func refusedToken(log string) string {
	lines := strings.Split(log, "\n")
	for _, l := range slices.Backward(lines) {
		if strings.Contains(l, "Unauthorized") || strings.Contains(l, "code=401") {
			return strings.TrimSpace(l[:min(len(l), 200)])
		}
	}
	return ""
}

func restarts(p *corev1.Pod) int32 {
	n := int32(0)
	for _, c := range p.Status.ContainerStatuses {
		n = max(n, c.RestartCount)
	}
	return n
}
