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
			Name: "session-crd", Title: "the cluster knows what a session is", On: steps.Remote, Needs: []string{"signed-in"},
			FixedBy: "operator",
			Why: "Renku's services remember for 6 hours which kinds a cluster serves: this one has to be there before " +
				"they are restarted",
			References: []string{
				"SwissDataScienceCenter/amalthea: helm-chart/amalthea-sessions/templates/amaltheasession-crd.yaml",
			},
			Run: func(ctx context.Context, e steps.Env) steps.Result {
				return check.Served(ctx, e.Cluster, sessionCRD, sessionVersion, "")
			},
		},
		{
			Name: "session-crd-equal", Title: "both clusters define a session alike", On: steps.Remote,
			Needs: []string{"session-crd"}, FixedBy: "operator",
			Why: "the definition carries no version: an operator that was updated without it (deployCrd off) reads " +
				"fields that are not there, and Renku writes fields that are dropped",
			References: []string{"SwissDataScienceCenter/amalthea: pull requests 1120, 1121"},
			Run:        sameCRD,
		},
		{
			Name: "session-crd-owner", Title: "the definition belongs to the operator's release", On: steps.Remote,
			Needs: []string{"session-crd"},
			Why: "a second release that brings it along fails with invalid ownership metadata; one that doesn't " +
				"depends on the first, which takes all sessions with it when it is removed",
			References: []string{"SwissDataScienceCenter/amalthea: helm-chart/amalthea-sessions/values.yaml (deployCrd)"},
			Run:        crdOwner,
		},
		{
			Name: "operator-ready", Title: "an operator looks after the sessions' namespace", On: steps.Remote,
			Needs: []string{"namespace"}, FixedBy: "operator", Timeout: startsWithin,
			Why: "without one, sessions are asked for and nothing happens; it watches the one namespace that its " +
				"release is in, unless it was told to watch all",
			References: []string{
				page,
				"SwissDataScienceCenter/amalthea: helm-chart/amalthea-sessions/templates/deployment.yaml (RELEASE_NAMESPACE, " +
					"CLUSTER_SCOPED)",
			},
			Run: operatorReady,
		},
		{
			Name: "operator-version", Title: "the operator has the version of the local cluster", On: steps.Remote,
			Needs: []string{"signed-in"}, FixedBy: "operator",
			Why: "the published guide installs without --version, which takes the newest chart; Renku pins another. " +
				"Its \"default priority class and remote service account\" are no values of the chart: the pool and the " +
				"registered cluster name them",
			References: []string{page, "SwissDataScienceCenter/renku: helm-chart/renku/requirements.yaml"},
			Run:        operatorSameVersion,
		},
		{
			Name: "rclone-storage-class", Title: "the StorageClass of data connectors is there", On: steps.Remote,
			When: mountsConnectors, Needs: []string{"operator-ready"}, FixedBy: "driver",
			Why:        "the operator asks for volumes of that class: a session with a data connector stays Pending without it",
			References: []string{"SwissDataScienceCenter/csi-rclone: deploy/csi-rclone/templates"},
			Run:        rcloneStorageClass,
		},
		{
			Name: "same-site", Title: "the session cookie fits how sessions are opened", On: steps.Remote,
			Needs: []string{"operator-ready"}, FixedBy: "operator",
			Why: "in a frame of the portal the cookie must be SameSite=None: the chart's useNoneSameSiteSessionCookie, since " +
				"0.27.0, which the published guide does not name. " +
				"It opens the session to other sites unless the ingress answers with CORS and CSP headers, and anonymous " +
				"sessions then fail. " +
				"The guide's --skip-auth-preflight can't be set: no chart has such a value",
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
		return steps.Skipped("the %s cluster has no %s to compare with", e.PeerName(), sessionCRD)
	case here.hash != there.hash:
		fix, byHand := alikeFix(ctx, e, there)
		return onlyByHand(byHand, steps.Failed(fmt.Sprintf("%s differs: %s on the %s cluster, %s on the %s one",
			sessionCRD, there.hash, e.SideName(), here.hash, e.PeerName()), fix))
	}
	return steps.Passed("%s is %s on both", sessionCRD, here.hash)
}

// onlyByHand removes the action from a result that can only be fixed manually.
func onlyByHand(byHand bool, r steps.Result) steps.Result {
	if byHand {
		return r.WithoutAction()
	}
	return r
}

// versionFix is the fix for a version mismatch: carrick's own action if carrick installed the
// release, otherwise an explicit request to change an unmanaged release.
func versionFix(e steps.Env, what, name string) string {
	fact := what + "-stands"
	switch {
	case isOurs(e.Own, fact) || e.Own.FieldText(fact, "name") == "":
		return ""
	case e.Own.FieldText(fact, "release") == "":
		return "it was not installed by Helm: have chart " + name + " " + e.Answers.Text(what+".version") +
			" rendered by what did (Argo CD, kubectl)"
	}
	return fmt.Sprintf("%s --take-over    # changes release %s, which somebody else made, to %s",
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
		return steps.Passed("%s belongs to no release: it is left as it is (deployCrd off)", sessionCRD)
	case owner == e.Answers.Text("operator.release") && ns == sessionsNamespace(e):
		return steps.Passed("%s belongs to release %s/%s", sessionCRD, ns, owner)
	}
	in, err := e.Cluster.Get(ctx, check.Namespaces, "", ns)
	if apierrors.IsNotFound(err) || (err == nil && in.GetDeletionTimestamp() != nil) {
		return steps.Warned(
			fmt.Sprintf(
				"%s says that it belongs to release %s/%s, whose namespace is gone: no release updates it", sessionCRD, ns, owner,
			),
			e.Kubectl()+" annotate --overwrite crd "+sessionCRD+" meta.helm.sh/release-name="+e.Answers.Text("operator.release")+
				" meta.helm.sh/release-namespace="+sessionsNamespace(e),
		)
	}
	if err != nil && !apierrors.IsForbidden(err) {
		return steps.Errored(err)
	}
	return steps.Warned(
		fmt.Sprintf("%s belongs to release %s/%s: when that is removed, it goes with all sessions", sessionCRD, ns, owner),
		"agree with its owner on versions; carrick installs beside it without the definition (deployCrd off)",
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
					"operator %s/%s claims all namespaces, and no ClusterRoleBinding lets its ServiceAccount update sessions",
					o.Namespace, o.Name,
				),
				"",
			)
		}
		return steps.Failed(
			fmt.Sprintf(
				"operator %s/%s watches namespace %s alone, and sessions are in %s", o.Namespace, o.Name,
				operatorEnv(o)["RELEASE_NAMESPACE"], ns,
			),
			"",
		)
	}
	if d == nil {
		return steps.Undone("no operator looks after namespace " + ns)
	}
	fix := e.Kubectl() + " -n " + d.Namespace + " describe deployment " + d.Name +
		"    # and the pods: -l app.kubernetes.io/name=" + operatorChart
	r := check.Available(ctx, e.Cluster, d.Namespace, d.Name, fix)
	if r.Status == steps.Pass {
		r.Found += ", for " +
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
	fix, byHand := alikeFix(ctx, e, there)
	return sameVersion(e, there, here, fix, byHand)
}

// sameVersion compares the versions of one product on both sides. Equal versions pass, another
// version with the same definition works, everything else fails. byHand means that the fix
// installs a definition that the action does not change.
func sameVersion(e steps.Env, there, here seen, fix string, byHand bool) steps.Result {
	found := fmt.Sprintf("%s: %s. %s: %s", e.SideName(), there, e.PeerName(), here)
	want := here.version()
	if want == "" {
		want = here.pinned
	}
	switch {
	case there.floating() || here.floating():
		return steps.Failed("an image is tagged latest, which is another one tomorrow. "+found, fix)
	case there.hash != "" && here.hash != "" && there.hash != here.hash:
		return onlyByHand(byHand, steps.Failed("the definitions of a session differ. "+found, fix))
	case there.version() == "" || want == "":
		return steps.Skipped("%s", "a version can't be told. "+found)
	case there.version() != want && there.hash != "" && there.hash == here.hash:
		return steps.Warned("the versions differ, the definitions of a session don't. "+found, fix)
	case there.version() != want:
		return steps.Failed("the versions differ. "+found, fix)
	case there.differs():
		return steps.Warned(
			"the chart and what runs differ. "+found,
			e.Kubectl()+
				" get deployments,daemonsets -A -l helm.sh/chart -o wide    # the image was changed by hand, or by a "+
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
			"set the chart's rcloneStorageClass to "+rcloneClass,
		)
	}
	fix := ""
	if name != rcloneClass {
		fix = "set the chart's rcloneStorageClass to " + rcloneClass + ", which csi-rclone makes"
	}
	return check.Exists(ctx, e.Cluster, check.StorageClasses, "", name, "StorageClass "+name, fix)
}

// errGone is reported if the operator was deleted after another check saw it.
var errGone = errors.New("the operator is gone again")

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
			"set useNoneSameSiteSessionCookie: %v in the values of release %s, or answer sessions.framed", framed,
			e.Own.FieldText("operator-stands", "release"),
		)
	}
	switch {
	case framed && !none:
		return steps.Failed(
			"sessions shall open in a frame, and the operator does not make their cookie SameSite=None: signing in fails there",
			fix,
		)
	case none && !framed:
		return steps.Failed(
			"the operator makes the session cookie SameSite=None although sessions open in a tab of their own: other sites "+
				"may use it, and anonymous sessions fail",
			fix,
		)
	case framed:
		return steps.Passed("SameSite=None, for sessions in a frame; anonymous sessions are not possible")
	}
	return steps.Passed("the cookie stays on its own site: sessions open in a tab of their own")
}
