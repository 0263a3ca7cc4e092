package renku

import (
	"context"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster/masked"
	"carrick/steps"
	"carrick/steps/action"
)

// sessionsKind is the resource of Amalthea sessions (SwissDataScienceCenter/amalthea
// config/crd/bases/amalthea.dev_amaltheasessions.yaml).
var sessionsKind = schema.GroupVersionResource{Group: "amalthea.dev", Version: "v1alpha1", Resource: "amaltheasessions"}

const (
	// sessionImage serves its pod's name over HTTP. It runs on every platform, as any user, and
	// serves nothing that requires a login.
	sessionImage = "registry.k8s.io/e2e-test-images/agnhost:2.53"
	testPort     = "8000"
)

func session() steps.Step {
	return steps.Step{
		Name: "session", Title: "Test session",
		Map: steps.MapRow{Remote: "test session", Arrow: steps.Remote},
		Why: "carrick starts one small session, as Renku would, to prove that everything works together. The session uses " +
			"a volume, memory and quota until you run carrick undo LINK --step session. It has no sign-in. With " +
			"network.isolate no one can open its address. Without network.isolate everyone with the address can see the name " +
			"of its pod.",
		Ask: sessionQuestions(),
		Actions: []steps.Action{{
			Name: "test-session", Title: "Start a test session", On: steps.Remote, When: tested,
			Needs: []string{"credential-rights", "priority-classes", "storage-class", "ingress-class"},
			Doer:  testSession{action.Manifest{File: "session.yaml", Values: sessionValues()}},
		}},
		Checks: sessionChecks(),
	}
}

func tested(e steps.Env) bool { return e.Answers.Bool("session.test") }

func sessionQuestions() []steps.Question {
	return []steps.Question{
		{
			Key: "session.test", Title: "Start a test session", Kind: steps.YesNo, On: steps.Remote,
			Help:    "Enter yes after all other checks pass. The session runs until you undo this step.",
			Default: steps.Fixed(false, "carrick's default"),
		},
		{
			Key: "session.image", Title: "Image of the test session", Kind: steps.Text, On: steps.Remote, When: tested,
			Help:    "The image must serve HTTP on port " + testPort + ".",
			Default: steps.Fixed(sessionImage, "carrick's default, a small image for every platform"),
		},
		{
			Key: "session.cpu", Title: "CPUs of the test session", Kind: steps.Quantity, On: steps.Remote, When: tested,
			Help:    "Enter a quantity such as 500m. Use the CPUs of the pool's smallest resource class.",
			Default: func(e steps.Env) (any, string) { return e.Answers.Text("class.cpu"), "from the resource class" },
		},
		{
			Key: "session.memory", Title: "Memory of the test session", Kind: steps.Quantity, On: steps.Remote, When: tested,
			Help:    "Enter a quantity such as 1Gi. Use the memory of the pool's smallest resource class.",
			Default: func(e steps.Env) (any, string) { return e.Answers.Text("class.memory"), "from the resource class" },
		},
	}
}

// testName returns the name of the test session. It has at most 50 characters, because the
// StatefulSet controller puts the name and a hash into a label of at most 63 characters.
func testName(e steps.Env) string {
	const most = 50
	name := "carrick-test-" + e.Link
	if len(name) > most {
		name = name[:most-9] + "-" + strings.TrimPrefix(masked.New(e.Link).Hash(), "sha256:")[:8]
	}
	return name
}

var doubleSlash = regexp.MustCompile(`/+`)

// testPath returns the URL path of the test session. Like Renku, it builds the path from the
// cluster's path and the session's name.
func testPath(e steps.Env) string {
	return doubleSlash.ReplaceAllString("/"+e.Answers.Text("sessions.path")+"/"+testName(e), "/")
}

// sessionValues returns the template values of the test session. Renku computes the same values
// from its cluster and pool (renku-data-services
// components/renku_data_services/notebooks/core_sessions.py).
func sessionValues() action.Values {
	value := func(of func(steps.Env) any) func(context.Context, steps.Env) (any, error) {
		return func(_ context.Context, e steps.Env) (any, error) { return of(e), nil }
	}
	return action.Values{
		"name": value(func(e steps.Env) any { return testName(e) }),
		"path": value(func(e steps.Env) any { return testPath(e) }),
		"priority-class": value(func(e steps.Env) any {
			if pools := e.Answers.List("pools.quotas"); len(pools) > 0 {
				return pools[0]
			}
			return nil
		}),
		"node-selector": value(func(e steps.Env) any { return pairs(e.Answers.List("nodes.labels")) }),
		"annotations":   func(_ context.Context, e steps.Env) (any, error) { return e.Own.Value("session-annotations") },
		"tolerations": value(func(e steps.Env) any {
			var out []any
			for _, key := range e.Answers.List("nodes.tolerations") {
				out = append(out, map[string]any{"key": key, "operator": "Exists"})
			}
			if out == nil {
				return nil
			}
			return out
		}),
		"tls-secret": value(func(e steps.Env) any {
			if name := e.Answers.Text("sessions.tls-secret"); name != "" && !plainHTTP(e) {
				return map[string]any{"name": name, "adopt": false}
			}
			return nil
		}),
		"default-cert": value(func(e steps.Env) any { return e.Answers.Text("sessions.tls-secret") == "" && !plainHTTP(e) }),
		"args": value(func(e steps.Env) any {
			if e.Answers.Text("session.image") == sessionImage {
				return []any{"serve-hostname", "--port=" + testPort}
			}
			return nil
		}),
	}
}

func plainHTTP(e steps.Env) bool { return e.Answers.Text("sessions.protocol") == "http" }

// pairs converts "key=value" items to a map. It returns nil instead of an empty map.
func pairs(list []string) any {
	out := map[string]any{}
	for _, l := range list {
		if key, value, ok := strings.Cut(l, "="); ok {
			out[key] = value
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// belongs reports whether an object is part of the session with the given name. The operator sets a
// label or an owner reference on its objects, or gives them the session's name.
func belongs(o *unstructured.Unstructured, name string) bool {
	if o.GetLabels()["app.kubernetes.io/instance"] == name || o.GetName() == name {
		return true
	}
	for _, owner := range o.GetOwnerReferences() {
		if owner.Kind == "AmaltheaSession" && owner.Name == name {
			return true
		}
	}
	return false
}
