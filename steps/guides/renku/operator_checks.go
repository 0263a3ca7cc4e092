package renku

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

func operatorChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "session-crd", Title: "The cluster has the AmaltheaSession CRD", On: steps.Remote,
			Needs:   []string{"signed-in"},
			FixedBy: "operator",
			Why: "Renku's services cache for 6 hours which kinds a cluster serves, so the CRD must exist before the " +
				"services restart.",
			References: []string{
				"SwissDataScienceCenter/amalthea: helm-chart/amalthea-sessions/templates/amaltheasession-crd.yaml",
			},
			Run: func(ctx context.Context, e steps.Env) steps.Result {
				return check.Served(ctx, e.Cluster, sessionCRD, sessionVersion, "")
			},
		},
		{
			Name: "session-crd-equal", Title: "Both clusters have the same session CRD", On: steps.Remote,
			Needs: []string{"session-crd"}, FixedBy: "operator",
			Why: "If an operator is updated without its CRD (deployCrd off), it reads fields that the CRD lacks, and the API " +
				"server drops fields that Renku writes.",
			References: []string{"SwissDataScienceCenter/amalthea: pull requests 1120, 1121"},
			Run:        sameCRD,
		},
		{
			Name: "session-crd-owner", Title: "The session CRD belongs to the operator's release", On: steps.Remote,
			Needs: []string{"session-crd"},
			Why: "A second release with the CRD fails (invalid ownership metadata). A release without the CRD depends " +
				"on the first, whose removal deletes all sessions.",
			References: []string{"SwissDataScienceCenter/amalthea: helm-chart/amalthea-sessions/values.yaml (deployCrd)"},
			Run:        crdOwner,
		},
		{
			Name: "operator-ready", Title: "An operator reconciles the session namespace", On: steps.Remote,
			Needs: []string{"namespace"}, FixedBy: "operator", Timeout: startsWithin,
			Why: "Without an operator no session starts. An operator watches only the namespace of its release unless it is " +
				"configured for all namespaces.",
			References: []string{
				page,
				"SwissDataScienceCenter/amalthea: helm-chart/amalthea-sessions/templates/deployment.yaml (RELEASE_NAMESPACE, " +
					"CLUSTER_SCOPED)",
			},
			Run: operatorReady,
		},
		{
			Name: "operator-version", Title: "The operator has the same version as on the local cluster", On: steps.Remote,
			Needs: []string{"signed-in"}, FixedBy: "operator",
			Why: "The published guide installs the newest chart, but Renku pins a version. The guide's default " +
				"priority class and remote account are not chart values.",
			References: []string{page, "SwissDataScienceCenter/renku: helm-chart/renku/requirements.yaml"},
			Run:        operatorSameVersion,
		},
		{
			Name: "rclone-storage-class", Title: "The StorageClass of data connectors exists", On: steps.Remote,
			When: mountsConnectors, Needs: []string{"operator-ready"}, FixedBy: "driver",
			Why: "The operator creates volumes with this StorageClass. Without it, sessions with data connectors " +
				"stay Pending.",
			References: []string{"SwissDataScienceCenter/csi-rclone: deploy/csi-rclone/templates"},
			Run:        rcloneStorageClass,
		},
		{
			Name: "same-site", Title: "The session cookie matches how sessions open", On: steps.Remote,
			Needs: []string{"operator-ready"}, FixedBy: "operator",
			Why: "Sessions in frames require SameSite=None (useNoneSameSiteSessionCookie). Without frames, this value breaks " +
				"anonymous sessions and weakens CSRF protection.",
			References: []string{
				page,
				"SwissDataScienceCenter/amalthea: helm-chart/amalthea-sessions/values.yaml; pull requests 1089 (closed), 1097",
			},
			Run: sameSite,
		},
	}
}

func crdOf(ctx context.Context, e steps.Env) (*unstructured.Unstructured, error) {
	return e.Cluster.Get(ctx, check.CRDs, "", sessionCRD)
}

func sameCRD(ctx context.Context, e steps.Env) steps.Result {
	there, here, err, peerErr := seenOnBoth(e, "amalthea")
	if err != nil {
		return steps.Errored(err)
	}
	if peerErr != nil {
		return steps.Errored(peerErr)
	}
	switch {
	case here.hash == "":
		return steps.Skipped("the %s cluster has no CRD %s to compare with", e.PeerName(), sessionCRD)
	case here.hash != there.hash:
		fix, manual := alikeFix(ctx, e, there)
		return withoutActionIf(
			manual, steps.Failed(fmt.Sprintf("CRD %s differs: hash %s on the %s cluster, hash %s on the %s cluster",
				sessionCRD, there.hash, e.SideName(), here.hash, e.PeerName()), fix),
		)
	}
	return steps.Passed("CRD %s has hash %s on both clusters", sessionCRD, here.hash)
}

func withoutActionIf(manual bool, r steps.Result) steps.Result {
	if manual {
		return r.WithoutAction()
	}
	return r
}

// versionFix returns the fix for a version mismatch. If carrick installed the release or if nothing
// is installed, the fix is "", because carrick's own action fixes the mismatch. The parameter what
// is "operator" or "driver", and name is the chart.
func versionFix(e steps.Env, what, name string) string {
	fact := what + "-stands"
	switch {
	case isOurs(e.Own, fact) || e.Own.FieldText(fact, "name") == "":
		return ""
	case e.Own.FieldText(fact, "release") == "":
		return "update the workload to chart " + name + " " + e.Answers.Text(what+".version") +
			" with the tool that installed it, which is not Helm (for example Argo CD or kubectl)"
	}
	return fmt.Sprintf("%s --take-over    # changes release %s, which another user or tool created, to %s",
		e.ApplyStep("operator"), clean.Name(e.Own.FieldText(fact, "release")), e.Answers.Text(what+".version"))
}

func crdOwner(ctx context.Context, e steps.Env) steps.Result {
	crd, err := crdOf(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	notes := crd.GetAnnotations()
	owner, ns := notes["meta.helm.sh/release-name"], notes["meta.helm.sh/release-namespace"]
	switch {
	case owner == "":
		return steps.Passed("CRD %s belongs to no release, so carrick leaves it unchanged (deployCrd off)", sessionCRD)
	case owner == e.Answers.Text("operator.release") && ns == sessionsNamespace(e):
		return steps.Passed("CRD %s belongs to release %s/%s", sessionCRD, ns, owner)
	}
	in, err := e.Cluster.Get(ctx, check.Namespaces, "", ns)
	if apierrors.IsNotFound(err) || (err == nil && in.GetDeletionTimestamp() != nil) {
		return steps.Warned(
			fmt.Sprintf(
				"CRD %s belongs to release %s/%s, whose namespace no longer exists, so no release updates the CRD", sessionCRD, ns,
				owner,
			),
			e.Kubectl()+" annotate --overwrite crd "+sessionCRD+" meta.helm.sh/release-name="+e.Answers.Text("operator.release")+
				" meta.helm.sh/release-namespace="+sessionsNamespace(e),
		)
	}
	if err != nil && !apierrors.IsForbidden(err) {
		return steps.Errored(err)
	}
	return steps.Warned(
		fmt.Sprintf("CRD %s belongs to release %s/%s, and removing that release deletes all sessions", sessionCRD, ns, owner),
		"agree on versions with the owner of that release. carrick installs its own operator without the CRD (deployCrd off)",
	)
}

func operatorReady(ctx context.Context, e steps.Env) steps.Result {
	d, others, err := operators(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	ns := sessionsNamespace(e)
	if d == nil && len(others) > 0 {
		o := others[0]
		if operatorEnv(o)["CLUSTER_SCOPED"] == "true" {
			return steps.Failed(
				fmt.Sprintf(
					"operator %s/%s is configured for all namespaces, but no ClusterRoleBinding allows its ServiceAccount to "+
						"update sessions",
					o.Namespace, o.Name,
				),
				"",
			)
		}
		return steps.Failed(
			fmt.Sprintf(
				"operator %s/%s watches only namespace %s, but sessions are in namespace %s", o.Namespace, o.Name,
				operatorEnv(o)["RELEASE_NAMESPACE"], ns,
			),
			"",
		)
	}
	if d == nil {
		return steps.Undone("no operator watches namespace " + ns)
	}
	fix := e.Kubectl() + " -n " + d.Namespace + " describe deployment " + d.Name +
		"    # and the pods: -l app.kubernetes.io/name=" + operatorChart
	r := check.Available(ctx, e, d.Namespace, d.Name, fix)
	if r.Status == steps.Pass {
		r.Found += ", watching " +
			map[bool]string{true: "all namespaces", false: "namespace " + ns}[operatorEnv(d)["CLUSTER_SCOPED"] == "true"]
		return workingOperator(ctx, e, d, r)
	}
	return r
}

func operatorSameVersion(ctx context.Context, e steps.Env) steps.Result {
	there, here, err, peerErr := seenOnBoth(e, "amalthea")
	if err != nil {
		return steps.Errored(err)
	}
	if there.version() == "" {
		d, _, err := operators(ctx, e)
		if err != nil {
			return steps.Errored(err)
		}
		if d == nil {
			return steps.Skipped("no operator runs on the %s cluster yet", e.SideName())
		}
	}
	if peerErr != nil {
		return steps.Errored(peerErr)
	}
	fix, manual := alikeFix(ctx, e, there)
	return sameVersion(e, there, here, fix, manual)
}

// sameVersion compares the versions of one product on both sides. Different session CRDs are a
// failure. Different versions with equal CRDs are only a warning. If manual is true, the admin must
// replace the CRD, because carrick's action does not.
func sameVersion(e steps.Env, there, here seen, fix string, manual bool) steps.Result {
	found := fmt.Sprintf("%s: %s. %s: %s", e.SideName(), there, e.PeerName(), here)
	want := here.version()
	if want == "" {
		want = here.pinned
	}
	switch {
	case there.floating() || here.floating():
		return steps.Failed("an image has the tag latest, which changes over time. "+found, fix)
	case there.hash != "" && here.hash != "" && there.hash != here.hash:
		return withoutActionIf(manual, steps.Failed("the session CRDs differ. "+found, fix))
	case there.version() == "" || want == "":
		return steps.Skipped("%s", "a version is unknown. "+found)
	case there.version() != want && there.hash != "" && there.hash == here.hash:
		return steps.Warned("the versions differ, but the session CRDs do not. "+found, fix)
	case there.version() != want:
		return steps.Failed("the versions differ. "+found, fix)
	case there.differs():
		return steps.Warned(
			"the chart and the running image differ. "+found,
			e.Kubectl()+
				" get deployments,daemonsets -A -l helm.sh/chart -o wide    # the image was changed manually or by a "+
				"registry mirror",
		)
	}
	return steps.Passed("%s", found)
}

func rcloneStorageClass(ctx context.Context, e steps.Env) steps.Result {
	d, _, err := operators(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if d == nil {
		return steps.Errored(errGone)
	}
	name := clean.Text(operatorEnv(d)["RCLONE_STORAGE_CLASS"])
	if name == "" {
		return steps.Warned(
			fmt.Sprintf("operator %s/%s names no StorageClass for data connectors (RCLONE_STORAGE_CLASS)", d.Namespace, d.Name),
			"set rcloneStorageClass in the Helm values of the operator to "+rcloneClass,
		)
	}
	fix := ""
	if name != rcloneClass {
		fix = "set rcloneStorageClass in the Helm values of the operator to " + rcloneClass +
			", the StorageClass that csi-rclone creates"
	}
	return check.Exists(ctx, e.Cluster, check.StorageClasses, "", name, "StorageClass "+name, fix)
}

// errGone is returned if the operator was deleted after an earlier check had found it.
var errGone = errors.New("the operator no longer exists")

func sameSite(ctx context.Context, e steps.Env) steps.Result {
	d, _, err := operators(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if d == nil {
		return steps.Errored(errGone)
	}
	framed, none := e.Answers.Bool("sessions.framed"), operatorEnv(d)["USE_NONE_SAME_SITE_SESSION_COOKIE"] == "true"
	fix := ""
	if !isOurs(e.Own, "operator-stands") {
		fix = fmt.Sprintf(
			"set useNoneSameSiteSessionCookie: %v in the values of release %s, or change sessions.framed", framed,
			e.Own.FieldText("operator-stands", "release"),
		)
	}
	switch {
	case framed && !none:
		return steps.Failed(
			"sessions open in a frame, but the operator does not set SameSite=None on the session cookie, so signing in fails",
			fix,
		)
	case none && !framed:
		return steps.Failed(
			"the operator sets SameSite=None on the session cookie, but sessions open in their own tab. Other sites can use "+
				"the cookie, and anonymous sessions fail",
			fix,
		)
	case framed:
		return steps.Passed(
			"the session cookie has SameSite=None for sessions in a frame. Anonymous sessions are not possible",
		)
	}
	return steps.Passed("the session cookie is limited to its own site, and sessions open in their own tab")
}
