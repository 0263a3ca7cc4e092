package renku

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

var statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}

// startsWithin is the timeout for the start of a session, including image pulls and the creation
// of a volume.
const startsWithin = 5 * time.Minute

const operatorSource = "SwissDataScienceCenter/amalthea: api/v1alpha1 (amaltheasession_children.go), " +
	"internal/controller"

func sessionChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "session-reconciled", Title: "The operator reconciles the test session", On: steps.Remote, When: tested,
			FixedBy: "test-session", Needs: []string{"signed-in"}, Timeout: startsWithin,
			Why: "A session that is not reconciled means that no operator runs or that the operator watches " +
				"another namespace.",
			References: []string{operatorSource},
			Run:        ofSession(sessionMade),
		},
		{
			Name: "session-pod", Title: "The test session's pod runs", On: steps.Remote, When: tested, FixedBy: "test-session",
			Needs: []string{"session-reconciled"}, Timeout: startsWithin,
			Why:        "The pod runs only if the images, the nodes, the quota and the PriorityClass all fit.",
			References: []string{operatorSource},
			Run:        ofSession(sessionPod),
		},
		{
			Name: "session-volume", Title: "The test session's volume is bound", On: steps.Remote, When: tested,
			FixedBy: "test-session",
			Needs:   []string{"session-reconciled"}, Timeout: startsWithin,
			Why:        "Without a volume the pod stays Pending.",
			References: []string{operatorSource},
			Run:        ofSession(sessionVolume),
		},
		{
			Name: "session-ingress", Title: "The test session's Ingress terminates TLS", On: steps.Remote, When: tested,
			FixedBy: "test-session",
			Needs:   []string{"session-reconciled"}, Timeout: startsWithin,
			Why: "Without TLS, sessions use HTTP or a wrong certificate. This happens if Renku dropped the " +
				"default-certificate flag at registration.",
			References: []string{
				operatorSource, "SwissDataScienceCenter/renku-data-services: components/renku_data_services/crc/core.py",
			},
			Run: ofSession(sessionIngress),
		},
		{
			Name: "session-url", Title: "The test session's URL is https at the session host", On: steps.Remote, When: tested,
			FixedBy: "test-session", Needs: []string{"session-reconciled"}, Timeout: startsWithin,
			Why:        "The portal opens this URL, and browsers block http content in an https page.",
			References: []string{"SwissDataScienceCenter/amalthea pull request 1106"},
			Run:        ofSession(sessionURL),
		},
	}
}

// ofSession wraps the Run function of a check. If the session exists, it removes the action from
// the result, because apply cannot fix an existing session.
func ofSession(run func(context.Context, steps.Env) steps.Result) func(context.Context, steps.Env) steps.Result {
	return func(ctx context.Context, e steps.Env) steps.Result {
		r := run(ctx, e)
		if _, err := theSession(ctx, e); err == nil {
			return r.WithoutAction()
		}
		return r
	}
}

func theSession(ctx context.Context, e steps.Env) (*unstructured.Unstructured, error) {
	return e.Cluster.Get(ctx, sessionsKind, sessionsNamespace(e), testName(e))
}

func noSession(e steps.Env, err error) steps.Result {
	return check.Missing(err, "AmaltheaSession "+sessionsNamespace(e)+"/"+testName(e), "")
}

func look(e steps.Env, what string) string {
	return e.Kubectl() + " -n " + sessionsNamespace(e) + " describe " + what
}

func sessionMade(ctx context.Context, e steps.Env) steps.Result {
	s, err := theSession(ctx, e)
	if err != nil {
		return noSession(e, err)
	}
	state, _, _ := unstructured.NestedString(s.Object, "status", "state")
	why, _, _ := unstructured.NestedString(s.Object, "status", "error")
	address, _, _ := unstructured.NestedString(s.Object, "status", "url")
	switch {
	case s.GetDeletionTimestamp() != nil:
		const found = "%s is being deleted (finalizers %v)"
		fix := operatorLogs(e, s.GetName()) + "    # the operator removes the finalizers"
		return steps.Failed(fmt.Sprintf(found, s.GetName(), s.GetFinalizers()), fix)
	case state == "Failed":
		fix := cmp.Or(
			check.RefusedFix(e.Kubectl(), sessionsNamespace(e), why), look(e, "amaltheasession "+s.GetName()),
		)
		r := steps.Failed(s.GetName()+" has failed: "+why, fix)
		if strings.Contains(strings.ToLower(why), "quota") { // the quota checks report this cause
			return r.Symptom()
		}
		return r
	case address == "": // NotReady is the default state; the operator sets the URL before it changes the state
		return steps.Waits(s.GetCreationTimestamp().Time, "%s has no status.url: no operator has reconciled it", s.GetName()).
			Or(
				e.Kubectl() +
					" get deployments -A -l app.kubernetes.io/name=amalthea-sessions    # check that the operator runs and " +
					"watches namespace " +
					sessionsNamespace(e),
			)
	}
	if state == "NotReady" {
		missing, err := missingChildren(ctx, e, s)
		if err != nil {
			return steps.Errored(err)
		}
		if len(missing) > 0 {
			return steps.Waits(
				s.GetCreationTimestamp().Time, "%s is NotReady: the operator has not created %s", s.GetName(),
				strings.Join(missing, ", "),
			).
				Or(operatorLogs(e, s.GetName()))
		}
	}
	return steps.Passed("%s is %s", s.GetName(), state)
}

// missingChildren returns the objects that the session requires but that do not exist. If the API
// server or a webhook rejects an object, the operator only logs the error and retries. The session
// then stays NotReady, without status.error and without an event (amalthea:
// internal/controller/children.go NewInteractiveChildResources; amaltheasession_controller.go).
func missingChildren(ctx context.Context, e steps.Env, s *unstructured.Unstructured) ([]string, error) {
	var out []string
	for _, child := range []struct {
		kind, name string
		gvr        schema.GroupVersionResource
	}{
		{"StatefulSet", s.GetName(), statefulSets},
		{"PersistentVolumeClaim", s.GetName(), check.VolumeClaims},
		{"Service", s.GetName(), check.Services},
		{"Ingress", s.GetName(), check.Ingresses},
		{"Secret", s.GetName() + "---internal", check.Secrets},
	} {
		_, err := e.Cluster.Get(ctx, child.gvr, s.GetNamespace(), child.name)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		if err != nil {
			out = append(out, child.kind+" "+child.name)
		}
	}
	return out, nil
}

// operatorLogs returns the command that shows the operator's log lines about a session.
// --since=1h suffices, because the operator retries at least every 17 minutes.
func operatorLogs(e steps.Env, session string) string {
	ns, name := e.Own.FieldText("operator-stands", "namespace"), e.Own.FieldText("operator-stands", "name")
	if name == "" {
		return e.Kubectl() +
			" get deployments -A -l app.kubernetes.io/name=amalthea-sessions    # then read the operator's logs"
	}
	return e.Kubectl() + " -n " + ns + " logs deployment/" + name + " --since=1h | grep " + session
}

// partOf returns the session's object of the given kind. If the object does not exist yet or cannot
// be read, partOf returns nil and the verdict.
func partOf(
	ctx context.Context, e steps.Env, gvr schema.GroupVersionResource, what string,
) (*unstructured.Unstructured, steps.Result) {
	s, err := theSession(ctx, e)
	if err != nil {
		return nil, noSession(e, err)
	}
	list, err := e.Cluster.List(ctx, gvr, sessionsNamespace(e), cluster.Selector{})
	if err != nil {
		return nil, steps.Errored(err)
	}
	for _, o := range list {
		if belongs(o, s.GetName()) {
			return o, steps.Result{}
		}
	}
	return nil, steps.Waits(
		s.GetCreationTimestamp().Time, "%s has no %s yet", s.GetName(), what,
	).Or(look(e, "amaltheasession "+s.GetName()))
}

func sessionPod(ctx context.Context, e steps.Env) steps.Result {
	o, r := partOf(ctx, e, check.Pods, "pod")
	if o == nil {
		// The StatefulSet has the session's name. Its events explain why it cannot create a pod.
		if said := warning(ctx, e.Cluster, sessionsNamespace(e), testName(e)); said != "" && r.Status == steps.Waiting {
			r.Found += ": " + said
		}
		return r
	}
	p, err := check.As[corev1.Pod](o)
	if err != nil {
		return steps.Errored(err)
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && p.Status.Phase == corev1.PodRunning {
			return steps.Passed("%s runs on node %s", p.Name, p.Spec.NodeName)
		}
	}
	why := whyPodNotReady(ctx, e.Cluster, p)
	if why == "" {
		why = string(p.Status.Phase) + ", not ready yet"
	}
	return steps.Waits(p.CreationTimestamp.Time, "%s: %s", p.Name, why).Or(look(e, "pod "+p.Name))
}

func sessionVolume(ctx context.Context, e steps.Env) steps.Result {
	o, r := partOf(ctx, e, check.VolumeClaims, "volume claim")
	if o == nil {
		return r
	}
	c, err := check.As[corev1.PersistentVolumeClaim](o)
	if err != nil {
		return steps.Errored(err)
	}
	class := "the default StorageClass"
	if c.Spec.StorageClassName != nil {
		class = "StorageClass " + *c.Spec.StorageClassName
	}
	switch c.Status.Phase {
	case corev1.ClaimBound:
		return steps.Passed("PersistentVolumeClaim %s is bound, with %s", c.Name, class)
	case corev1.ClaimLost:
		return steps.Failed(c.Name+" has lost its PersistentVolume", look(e, "pvc "+c.Name))
	}
	return steps.Waits(
		c.CreationTimestamp.Time, "PersistentVolumeClaim %s waits for %s", c.Name, class,
	).Or(look(e, "pvc "+c.Name))
}

func sessionIngress(ctx context.Context, e steps.Env) steps.Result {
	o, r := partOf(ctx, e, check.Ingresses, "Ingress")
	if o == nil {
		return r
	}
	in, err := check.As[networkingv1.Ingress](o)
	if err != nil {
		return steps.Errored(err)
	}
	switch {
	case plainHTTP(e):
		return steps.Warned(
			in.Name+
				": sessions.protocol is http, so the Ingress does not terminate TLS, and browsers block the session in the portal",
			"set sessions.protocol to https",
		)
	case len(in.Spec.TLS) == 0:
		return steps.Failed(
			in.Name+" has no tls section",
			e.ApplyStep("register")+"; the default certificate requires operator 0.24.0 or newer",
		)
	}
	return steps.Passed("Ingress %s terminates TLS with IngressClass %s", in.Name, deref(in.Spec.IngressClassName))
}

func deref(s *string) string {
	if s == nil {
		return "(the default)"
	}
	return *s
}

func sessionURL(ctx context.Context, e steps.Env) steps.Result {
	s, err := theSession(ctx, e)
	if err != nil {
		return noSession(e, err)
	}
	text, _, _ := unstructured.NestedString(s.Object, "status", "url")
	if text == "" {
		return steps.Waits(
			s.GetCreationTimestamp().Time, "%s has no URL yet", s.GetName(),
		).Or(look(e, "amaltheasession "+s.GetName()))
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return steps.Failed("the operator reports "+text+", which is not a URL", look(e, "amaltheasession "+s.GetName()))
	case u.Hostname() != e.Answers.Text("sessions.host"):
		return steps.Failed(text+" is not at host "+e.Answers.Text("sessions.host"), look(e, "amaltheasession "+s.GetName()))
	case u.Scheme != "https" && plainHTTP(e):
		return steps.Warned(text+": sessions.protocol is http", "set sessions.protocol to https")
	case u.Scheme != "https":
		return steps.Failed(
			text+" is not https",
			"install the operator with httpsSessionIngress=true (0.27.2 or newer) if a proxy in front of the ingress "+
				"terminates TLS. Otherwise see the check session-ingress",
		)
	}
	return steps.Passed("%s", text)
}
