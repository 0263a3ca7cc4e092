package renku

import (
	"strings"

	"carrick/steps"
)

// inForce returns the annotations that sessions get. If the cluster is registered, these are the
// annotations in Renku, and seen is "registered". Otherwise they are those that this link would
// register, and seen is "planned". mend is the apply command if the registered annotations can
// be replaced by ones that satisfy right, and "" otherwise.
func inForce(e steps.Env, right func(map[string]any) bool) (all map[string]any, seen, mend string, err error) {
	all, err = remoteFacts(e).Map("session-annotations")
	row, rowErr := localFacts(e).Map("cluster-row")
	if rowErr != nil {
		return all, "planned", "", err
	}
	if err == nil && right(all) {
		mend = e.ApplyStep("register")
	}
	all, _ = row["session_ingress_annotations"].(map[string]any)
	return all, "registered", mend, nil
}

// onNginx returns the annotations that sessions get (see inForce) if ingress-nginx reads them,
// otherwise the check's verdict. as is a prefix for findings.
func onNginx(
	e steps.Env, right func(map[string]any) bool,
) (all map[string]any, as, mend string, verdict *steps.Result) {
	controller, err := e.Own.Text("ingress-controller")
	if err != nil {
		r := steps.Errored(err)
		return nil, "", "", &r
	}
	if !isNginx(controller) {
		r := steps.Skipped("controller %s does not read ingress-nginx annotations", controller)
		return nil, "", "", &r
	}
	all, seen, mend, err := inForce(e, right)
	if err != nil {
		r := steps.Errored(err)
		return nil, "", "", &r
	}
	if seen == "registered" {
		as = "registered annotations: "
	}
	return all, as, mend, nil
}

// unfenced returns the protections that the annotations lack. They are required if other sites
// can send requests with the session's cookie.
func unfenced(all map[string]any) (lacking []string) {
	if textOf(all, enableCORS) != "true" || textOf(all, corsOrigin) == "" {
		lacking = append(lacking, "CORS (enable-cors, cors-allow-origin)")
	}
	if !strings.Contains(textOf(all, configSnippet), "frame-ancestors") {
		lacking = append(lacking, "a Content-Security-Policy with frame-ancestors (configuration-snippet)")
	}
	return lacking
}
