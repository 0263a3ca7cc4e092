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
			Name: "extension-image", Title: "the extension's image is to be had, and pinned", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "the published Deployment takes an image without a tag from Docker Hub, and an init container of Red " +
				"Hat SSO 7.1, which is at the end of its life: a new node may get neither",
			References: []string{resourcesSource}, Run: extensionPulls,
		},
		{
			Name: "extension-ready", Title: "the extension runs", On: steps.Local, Needs: []string{"signed-in"},
			FixedBy: "extension", Timeout: 3 * time.Minute,
			Why:        "without a ready pod each claim waits for the webhook's time limit, and is then misplaced or refused",
			References: []string{page}, Run: extensionReady,
		},
		{
			Name: "extension-rights", Title: "the extension has no rights that it does not need", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "the published guide gives the namespace's default account the use of every PodSecurityPolicy and the " +
				"right to make bindings in all namespaces: every pod of that namespace has them",
			References: []string{resourcesSource}, Run: extensionModest,
		},
		{
			Name: "extension-token", Title: "the extension's token is taken by the API server", On: steps.Local,
			Needs: []string{"extension-ready"},
			Why: "the published program reads its token once, at its start: tokens end, at the latest after a year, " +
				"and then it sees no new profile",
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
	r := check.Available(ctx, e.Cluster, in, extensionName, e.Kubectl()+" -n "+in+" describe pods -l app="+extensionName)
	if s.program == byUpstream && runsCarrick(e) && r.Status == steps.Pass {
		return steps.Warned("it runs the published program, and extension.program is "+byCarrick, remade(e))
	}
	return r
}

// refusedBy reports that pods are rejected; nil if none is.
func refusedBy(e steps.Env, s *extensionState) *steps.Result {
	why := check.ReplicaFailure(s.Deployment)
	if why == "" {
		return nil
	}
	fix := cmp.Or(check.RefusedFix(e.Kubectl(), extensionSpace(e), why),
		remade(e)+"    # its pods need nothing that the narrowest level refuses")
	if strings.Contains(why, byPSP) {
		fix = e.ApplyStep("extension") + "    # binds its pods' accounts to " + pspRole
	}
	r := steps.Failed(fmt.Sprintf("no pod of Deployment %s/%s is let in: %s", s.Namespace, s.Name, clean.Text(why)), fix)
	return &r
}

// unpulled is a container that waits for its image.
type unpulled struct{ pod, image, why string }

// waitsForImage returns the first such container of some pods, init containers first.
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
		return steps.Failed(fmt.Sprintf("pod %s gets no image %s: %s", u.pod, u.image, u.why), pullFix(e, u.image))
	}
	if s.makesKeystore() {
		return steps.Warned(
			fmt.Sprintf(
				"Deployment %s has the published init container, of %s, which is at the end of its life: cert-manager writes the "+
					"keystore, and carrick's program needs none",
				s.Name, keystoreImage,
			),
			remade(e),
		)
	}
	if s.image == "" {
		return steps.Skipped("Deployment %s/%s runs something else", s.Namespace, s.Name)
	}
	if !pinned(s.image) {
		return steps.Warned(
			fmt.Sprintf("image %s has neither a tag of its own nor a digest: another one may run tomorrow", clean.Text(s.image)),
			answer(e, "extension.image", "NAME:TAG or NAME@sha256:DIGEST")+", then: "+e.ApplyStep("extension"),
		)
	}
	return steps.Passed("%s", clean.Text(s.image))
}

func pullFix(e steps.Env, image string) string {
	switch {
	case strings.Contains(image, keystoreImage):
		return remade(e) + "    # without that init container"
	case strings.Contains(image, "keeyzar"):
		return "copy it into a registry of yours while Docker Hub has it, and " + answer(e, "extension.image", "the copy") +
			"; or " + answer(e, "extension.program", byCarrick)
	}
	return "make image IMAGE=" + image + "    # pushes carrick's; for another place " +
		answer(e, "extension.image", "its name")
}

// pinned reports whether an image is the same at each pull.
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
					"account %s is bound to ClusterRole %s by %s", clean.Text(who.Name), clean.Text(b.RoleRef.Name), b.Name,
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
			fix = remade(e) + " && " + fix
		}
		return steps.Warned("in namespace "+extensionSpace(e)+" "+check.Some(wide), fix)
	}
	return steps.Passed(
		"no account of namespace %s has more in all namespaces than the extension's own role", extensionSpace(e),
	)
}

const (
	// podTokenLife is how long the API server accepts a pod's token that is not renewed
	// (kubernetes/kubernetes: pkg/serviceaccount, ExpirationExtensionSeconds).
	podTokenLife = 365 * 24 * time.Hour
	// often is the number of restarts from which they are reported.
	often = 5
)

func extensionToken(ctx context.Context, e steps.Env) steps.Result {
	s, err := theExtension(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if s.program != byUpstream && !followsProfiles(e) {
		return steps.Skipped("it asks the API server for nothing, and has no token")
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
			return steps.Failed(fmt.Sprintf("pod %s is told that its token is not taken: %s", p.Name, line), restart)
		}
		if n := restarts(p); n > often {
			return steps.Warned(
				fmt.Sprintf("pod %s has started anew %d times", p.Name, n),
				e.Kubectl()+" -n "+p.Namespace+" logs "+p.Name+" --previous",
			)
		}
		if ends := p.CreationTimestamp.Add(podTokenLife); s.program == byUpstream {
			if time.Until(ends) < check.Month {
				return steps.Warned(
					fmt.Sprintf(
						"pod %s runs since %s, and reads its token only at its start: that is taken until %s", p.Name,
						p.CreationTimestamp.UTC().Format(time.DateOnly), ends.UTC().Format(time.DateOnly),
					),
					restart,
				)
			}
			again = ends.Add(-check.Month)
		}
	}
	if looked == 0 {
		return steps.Skipped("no pod of it has started")
	}
	r := steps.Passed("no log of %d pods says that it is not taken", looked)
	r.Again = again
	return r
}

// refusedToken returns the last log line about a rejected token: fabric8 logs "Unauthorized!
// Token may have expired!", others repeat the API server's message.
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
