package renku

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"carrick/cluster"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/check"
)

const nginxSource = "kubernetes/ingress-nginx: internal/ingress/annotations/parser/validators.go, issues 10501, " +
	"12648, 13156"

func annotationChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "annotations-valid", Title: "The annotations of the sessions' Ingress are strings", On: steps.Local,
			Why: "Renku's API stores any JSON, but Kubernetes accepts only strings. With other values no session starts " +
				"(Could not start the amalthea session).",
			References: []string{addressSource},
			Run:        annotationsText,
		},
		{
			Name: "uploads", Title: "The Ingress allows large uploads and sign-in responses", On: steps.Remote,
			Why: "Renku's chart sets these annotations only for local sessions. Without them ingress-nginx rejects large " +
				"uploads (413), and sign-ins fail (502).",
			References: []string{
				"SwissDataScienceCenter/renku: helm-chart/renku/values.yaml (notebooks.sessionIngress.annotations)",
			},
			Run: uploadsSet,
		},
		{
			Name: "cors-headers", Title: "The cors-allow-headers annotation is a list of names", On: steps.Remote,
			Why: "ingress-nginx rejects a variable in this annotation, such as the published guide's " +
				"\"$http_access_control_request_headers\".",
			References: []string{page, nginxSource},
			Run:        corsHeadersNamed,
		},
		{
			Name: "cors-origin", Title: "Only Renku's own pages can call and embed sessions", On: steps.Remote,
			Why: "The allowed origin must be the portal on the local cluster. The published guide says remote in one " +
				"place and local in another.",
			References: []string{page},
			Run:        corsOriginIsRenku,
		},
		{
			Name: "snippets-allowed", Title: "The ingress controller accepts the frame policy snippet", On: steps.Remote,
			Why: "Otherwise its webhook rejects each session's Ingress (annotation group ConfigurationSnippet contains risky " +
				"annotation). The published guide relies on snippets.",
			References: []string{nginxSource},
			Run:        snippetsAllowed,
		},
		{
			Name: "framing-restricted", Title: "CORS and a frame policy protect cross-site cookies", On: steps.Remote,
			Why: "With SameSite=None any site could act as the user unless CORS and a frame policy forbid it. The chart has " +
				"no value for the guide's skip-auth-preflight.",
			References: []string{
				page,
				"SwissDataScienceCenter/amalthea: helm-chart/amalthea-sessions/values.yaml (useNoneSameSiteSessionCookie), PR 1097",
			},
			Run: framingFenced,
		},
		{
			Name: "frame-cookies", Title: "Sessions in frames require SameSite=None cookies", On: steps.Remote,
			Why: "If the portal and the sessions are on the same site, frames work without SameSite=None.",
			Run: twoSites,
		},
	}
}

// annotationsText checks the registered annotations, or the planned annotations if the cluster is
// not registered.
func annotationsText(_ context.Context, e steps.Env) steps.Result {
	all, seen, _, err := inForce(e, func(map[string]any) bool { return true })
	if err != nil {
		return steps.Errored(err)
	}
	if bad := notText(all); len(bad) > 0 {
		return steps.Failed(
			"annotation values that are not strings: "+strings.Join(bad, ", "),
			e.ApplyStep("register")+"    # quotes each value",
		)
	}
	return steps.Passed("%d annotations (%s)", len(all), seen)
}

func notText(all map[string]any) []string {
	var bad []string
	for k, v := range all {
		if _, ok := v.(string); !ok {
			bad = append(bad, fmt.Sprintf("%s is %v", k, v))
		}
	}
	sort.Strings(bad)
	return bad
}

func uploadsSet(_ context.Context, e steps.Env) steps.Result {
	lacking := func(all map[string]any) (out []string) {
		for k := range uploads {
			if textOf(all, k) == "" {
				out = append(out, strings.TrimPrefix(k, nginxPrefix))
			}
		}
		slices.Sort(out)
		return out
	}
	all, as, applyFix, verdict := onNginx(e, func(all map[string]any) bool { return len(lacking(all)) == 0 })
	if verdict != nil {
		return *verdict
	}
	if not := lacking(all); len(not) > 0 {
		return steps.Warned(
			as+"missing "+strings.Join(not, ", "),
			cmp.Or(applyFix, "remove these annotations from sessions.annotations, and carrick sets them"),
		)
	}
	return steps.Passed(
		"%sproxy-body-size %s, proxy-buffer-size %s, proxy-request-buffering %s", as, textOf(all, bodySize),
		textOf(all, bufferSize), textOf(all, buffering),
	)
}

var headerNames = regexp.MustCompile(`^[A-Za-z0-9-_, ]*$`)

func corsHeadersNamed(_ context.Context, e steps.Env) steps.Result {
	good := func(all map[string]any) bool { return headerNames.MatchString(textOf(all, corsHeaders)) }
	all, as, applyFix, verdict := onNginx(e, good)
	if verdict != nil {
		return *verdict
	}
	names := textOf(all, corsHeaders)
	switch {
	case names == "":
		return steps.Skipped("cors-allow-headers is not set")
	case !good(all):
		return steps.Warned(
			fmt.Sprintf("%s%q is not a list of names, so ingress-nginx ignores or rejects the annotation", as, names),
			cmp.Or(applyFix, "remove "+corsHeaders+" from sessions.annotations, and carrick sets a list"),
		)
	}
	return steps.Passed("%s%s", as, names)
}

func corsOriginIsRenku(_ context.Context, e steps.Env) steps.Result {
	want := renkuOrigin(e)
	wrong := func(all map[string]any) string {
		origin, snippet := textOf(all, corsOrigin), textOf(all, configSnippet)
		words := strings.FieldsFunc(snippet, func(r rune) bool { return strings.ContainsRune(" \"';\n", r) })
		switch {
		case origin != "" && origin != want:
			return fmt.Sprintf("cors-allow-origin is %s, but Renku's pages are at %s", origin, want)
		case strings.Contains(snippet, "frame-ancestors") && !slices.Contains(words, want):
			return "frame-ancestors does not name " + want
		}
		return ""
	}
	all, as, applyFix, verdict := onNginx(e, func(all map[string]any) bool { return wrong(all) == "" })
	if verdict != nil {
		return *verdict
	}
	if textOf(all, corsOrigin) == "" && textOf(all, configSnippet) == "" {
		return steps.Skipped("neither cors-allow-origin nor a frame policy is set")
	}
	if found := wrong(all); found != "" {
		return steps.Failed(
			as+found, cmp.Or(applyFix, "remove the annotation from sessions.annotations, and carrick sets it for "+want),
		)
	}
	return steps.Passed("%s%s", as, want)
}

func snippetsAllowed(ctx context.Context, e steps.Env) steps.Result {
	used := func(all map[string]any) bool { return textOf(all, configSnippet) != "" }
	all, as, applyFix, verdict := onNginx(e, func(all map[string]any) bool { return !used(all) })
	if verdict != nil {
		return *verdict
	}
	if !used(all) && !framed(e) {
		return steps.Skipped("sessions open in their own tab and use no snippet")
	}
	state, err := nginxSnippets(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	switch {
	case state.allowed:
		return steps.Passed("%s", state.found)
	case !framed(e) && applyFix != "":
		return steps.Failed(
			as+"the annotations use a snippet: "+state.found,
			applyFix+"    # removes the snippet. Sessions open in their own tab (sessions.framed)",
		)
	}
	return steps.Failed(state.found, state.fix)
}

// crossSite reports whether the session operator sets SameSite=None on its cookies. known is false
// if the cluster has no session operator.
func crossSite(ctx context.Context, e steps.Env) (on, known bool, err error) {
	all, err := check.List[appsv1.Deployment](
		ctx, e.Cluster, check.Deployments, "",
		cluster.Selector{Labels: "app.kubernetes.io/name=amalthea-sessions,control-plane=controller-manager"},
	)
	if err != nil {
		return false, false, err
	}
	for _, d := range all {
		for _, c := range d.Spec.Template.Spec.Containers {
			for _, v := range c.Env {
				on = on || (v.Name == "USE_NONE_SAME_SITE_SESSION_COOKIE" && v.Value == "true")
			}
		}
	}
	return on, len(all) > 0, nil
}

func framingFenced(ctx context.Context, e steps.Env) steps.Result {
	on, known, err := crossSite(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if !on && !framed(e) {
		return steps.Skipped(
			"%s",
			map[bool]string{
				true:  "the operator does not set SameSite=None cookies, and sessions do not open in frames",
				false: "sessions do not open in frames",
			}[known],
		)
	}
	controller, err := e.Own.Text("ingress-controller")
	if err != nil {
		return steps.Errored(err)
	}
	if !isNginx(controller) {
		return steps.Warned(
			"carrick cannot check whether "+controller+" sends the CORS and Content-Security-Policy headers",
			others(controller, renkuOrigin(e)),
		)
	}
	all, seen, applyFix, err := inForce(e, func(all map[string]any) bool { return len(missingProtections(all)) == 0 })
	if err != nil {
		return steps.Errored(err)
	}
	lacking := missingProtections(all)
	if len(lacking) == 0 {
		return steps.Passed("CORS allows %s, and only pages of that origin can embed sessions", textOf(all, corsOrigin))
	}
	if applyFix != "" {
		return steps.Failed("the "+seen+" annotations lack "+strings.Join(lacking, " and "), applyFix)
	}
	fix := "set sessions.framed to yes, and carrick adds the annotations"
	if framed(e) {
		fix = "allow snippets in ingress-nginx (see snippets-allowed), then " + e.ApplyStep("register")
	}
	return steps.Failed(
		"the annotations lack "+strings.Join(lacking, " and "),
		fix+"; or set sessions.framed to no, and the operator's useNoneSameSiteSessionCookie to false",
	)
}

func twoSites(_ context.Context, e steps.Env) steps.Result {
	hosts, host := renkuHosts(e), sessionHost(e)
	switch {
	case !framed(e):
		return steps.Skipped("sessions open in their own tab and do not require SameSite=None cookies")
	case host == "" || len(hosts) == 0:
		return steps.Skipped("the session host or Renku's domain is not set")
	case probe.SameSite(hosts[0], host):
		return steps.Warned(fmt.Sprintf("%s and %s are the same site, so frames work without SameSite=None", hosts[0], host),
			"set the operator's useNoneSameSiteSessionCookie to false. Frames still work")
	}
	return steps.Passed("%s and %s are different sites", hosts[0], host)
}
