package renku

import (
	"strings"

	"carrick/steps"
)

// inForce returns the annotations that sessions get. If the cluster is registered, they come from
// Renku, and seen is "registered". Otherwise they are the annotations that this link would
// register, and seen is "planned". If the cluster is registered and the planned annotations satisfy
// right, applyFix is the apply command. Otherwise applyFix is "".
func inForce(e steps.Env, right func(map[string]any) bool) (all map[string]any, seen, applyFix string, err error) {
	all, err = remoteFacts(e).Map("session-annotations")
	row, rowErr := localFacts(e).Map("cluster-row")
	if rowErr != nil {
		return all, "planned", "", err
	}
	if err == nil && right(all) {
		applyFix = e.ApplyStep("register")
	}
	all, _ = row["session_ingress_annotations"].(map[string]any)
	return all, "registered", applyFix, nil
}

// onNginx returns all and applyFix from inForce. The result as is a prefix for findings. If the
// controller is not ingress-nginx, or if an error occurs, only verdict is set.
func onNginx(
	e steps.Env, right func(map[string]any) bool,
) (all map[string]any, as, applyFix string, verdict *steps.Result) {
	controller, err := e.Own.Text("ingress-controller")
	if err != nil {
		r := steps.Errored(err)
		return nil, "", "", &r
	}
	if !isNginx(controller) {
		r := steps.Skipped("controller %s does not read ingress-nginx annotations", controller)
		return nil, "", "", &r
	}
	all, seen, applyFix, err := inForce(e, right)
	if err != nil {
		r := steps.Errored(err)
		return nil, "", "", &r
	}
	if seen == "registered" {
		as = "registered annotations: "
	}
	return all, as, applyFix, nil
}

// missingProtections returns the missing protections against requests from other sites.
func missingProtections(all map[string]any) (lacking []string) {
	if textOf(all, enableCORS) != "true" || textOf(all, corsOrigin) == "" {
		lacking = append(lacking, "CORS (enable-cors, cors-allow-origin)")
	}
	if !strings.Contains(textOf(all, configSnippet), "frame-ancestors") {
		lacking = append(lacking, "a Content-Security-Policy with frame-ancestors (configuration-snippet)")
	}
	return lacking
}
