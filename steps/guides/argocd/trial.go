package argocd

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

func trial() steps.Step {
	return steps.Step{
		Name: "trial", Title: "Trial Application",
		Map: steps.MapRow{Local: "trial Application", Remote: "namespaces", Arrow: steps.Remote},
		Why: "Argo CD connects to a cluster once an Application targets it. In the Kubernetes API only the status of an " +
			"Application shows whether the connection works. The trial Application deploys nothing.",
		Ask: []steps.Question{{
			Key: "trial.repository", Title: "Repository of the trial Application", Kind: steps.URL, NotFromPeer: true, Opt: true,
			Help: "Enter a repository that Argo CD can read and that the project default permits. Leave it empty to check " +
				"an existing Application instead.",
			Default: steps.Fixed("https://github.com/argoproj/argocd-example-apps", "upstream's example"),
		}},
		Actions: []steps.Action{{
			Name: "trial", Title: "Create an Application that deploys nothing", On: steps.Local,
			Needs: []string{"cluster-secret", "one-secret"},
			When:  triesIt, Doer: action.Manifest{File: "application.yaml"},
		}},
		Checks: []steps.Check{{
			Name: "compared", Title: "Argo CD compares an Application with the destination", On: steps.Local, FixedBy: "trial",
			Why:        "The comparison shows that Argo CD can list the destination's objects with the cluster Secret.",
			Needs:      []string{"cluster-secret", "one-secret", "controller", "peer/roles"},
			References: []string{"argoproj/argo-cd: controller/state.go (CompareAppState), controller/clusterinfoupdater.go"},
			Timeout:    5 * time.Minute, Run: compared,
		}},
	}
}

func triesIt(e steps.Env) bool { return e.Answers.Text("trial.repository") != "" }

// application contains the fields of an Application that carrick reads (argoproj/argo-cd:
// pkg/apis/application/v1alpha1/types.go).
type application struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Project     string `json:"project"`
		Destination struct {
			Name      string `json:"name"`
			Server    string `json:"server"`
			Namespace string `json:"namespace"`
		} `json:"destination"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"conditions"`
		Sync struct {
			Status string `json:"status"`
		} `json:"sync"`
		ReconciledAt string `json:"reconciledAt"`
	} `json:"status"`
}

// compared checks whether Argo CD has compared an Application with the cluster. If several Applications target the
// cluster, it checks the one that carrick creates. If Argo CD fails to load the manifests or the cluster's objects, the
// sync status is Unknown and the conditions give the reason (argoproj/argo-cd: controller/state.go, CompareAppState).
func compared(ctx context.Context, e steps.Env) steps.Result {
	all, err := check.List[application](ctx, e.Cluster, applications, argoNamespace(e), cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	var app *application
	for _, a := range all {
		to := a.Spec.Destination
		targets := strings.TrimRight(to.Server, "/") == server(e) || to.Name == e.Answers.Text("cluster.name")
		if targets && (app == nil || a.Name == "carrick-"+e.Link) {
			app = a
		}
	}
	switch {
	case app == nil && !triesIt(e):
		return steps.Skipped("no Application in %s targets the cluster, and trial.repository is empty", argoNamespace(e))
	case app == nil:
		return steps.NotTried("no Application in " + argoNamespace(e) + " targets " + server(e))
	}
	found := "Application " + argoNamespace(e) + "/" + app.Name + ": "
	for _, c := range app.Status.Conditions {
		if strings.HasPrefix(c.Message, "Failed to load target state: ") {
			return steps.Warned(found+clean.Text(c.Message), "set trial.repository to a repository that Argo CD can read")
		} else if strings.HasSuffix(c.Type, "Error") {
			fix := e.Kubectl() + " -n " + argoNamespace(e) + " describe application " + app.Name
			if strings.Contains(c.Message, "do not match any of the allowed destinations") {
				fix = permit(e, app)
			}
			return steps.Failed(found+clean.Text(c.Message), fix)
		}
	}
	if s := app.Status.Sync.Status; s != "Synced" && s != "OutOfSync" {
		return steps.Waits(app.CreationTimestamp.Time, "%sArgo CD has not compared the Application yet", found)
	}
	return steps.Passed("%s%s as of %s", found, app.Status.Sync.Status, app.Status.ReconciledAt)
}

// permit returns the command that adds the Application's destination to its project (argoproj/argo-cd:
// pkg/apis/application/v1alpha1/app_project_types.go, IsDestinationPermitted).
func permit(e steps.Env, app *application) string {
	value := fmt.Sprintf(
		`[{"op": "add", "path": "/spec/destinations/-", "value": {"server": %q, "namespace": %q}}]`,
		server(e), cmp.Or(app.Spec.Destination.Namespace, "*"),
	)
	return fmt.Sprintf("%s -n %s patch appproject %s --type json -p %s",
		e.Kubectl(), argoNamespace(e), steps.Quoted(cmp.Or(app.Spec.Project, "default")), steps.Quoted(value))
}
