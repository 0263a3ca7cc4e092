package vsphere

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	watcher "carrick/cluster/extension"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

// Values of extension.program: the programs that can run as the extension.
const (
	byCarrick  = "carrick"
	byUpstream = "upstream"
)

// Names from the published guide. carrick uses the same names, so that it adopts existing objects instead of creating
// duplicates.
const (
	extensionName = "vsphere-extensions" // namespace, Deployment, Service, label app; carrick's ServiceAccount and roles
	webhookName   = "mutating.vsphere-extensions.keeyzar.de"
	configMapName = "vsphere-extensions-cm"
	configFile    = "application.properties"
	configKey     = "vsphere-extensions.readwritemany-sc"
	upstreamImage = "docker.io/keeyzar/vsphere-extensions-jvm"
)

// Ports on which the programs serve admission reviews.
const (
	carrickPort  = 8443
	upstreamPort = 8080
)

func extension() steps.Step {
	return steps.Step{
		Name: "extension", Title: "Extension",
		Map: steps.MapRow{Local: "extension"},
		Why: "The extension serves a webhook that sets the StorageClass of ReadWriteMany claims. On a cluster with " +
			"PodSecurityPolicies, it also binds new profiles to a PodSecurityPolicy. carrick creates the webhook last, " +
			"because a webhook without ready pods blocks claims or is skipped.",
		When: runsExtension,
		Ask:  extensionQuestions(),
		Facts: []steps.Fact{
			// Match conditions of webhooks are stable from Kubernetes 1.30 on, which also serves
			// ValidatingAdmissionPolicies in v1 (kubernetes/enhancements:
			// keps/sig-api-machinery/3716-admission-webhook-match-conditions).
			{
				Name: "serves-conditions", Title: "whether webhooks support match conditions", On: steps.Local,
				Learn: check.ServesFact(check.ValidatingPolicies),
			},
		},
		Actions: append(extensionActions(), steps.Action{
			Name: "webhook", Title: "Create the webhook for claims", On: steps.Local, When: usesWebhook,
			Needs: []string{"cert-secret", "cert-authority", "extension-ready", "extension-endpoints"},
			Doer: wholeDoer{
				Manifest: action.Manifest{File: "webhook.yaml", Values: action.Values{
					"label-key": func(
						_ context.Context, e steps.Env,
					) (any, error) {
						key, _ := namespaceSelector(e)
						return key, nil
					},
					"label-value": func(
						_ context.Context, e steps.Env,
					) (any, error) {
						_, value := namespaceSelector(e)
						return value, nil
					},
					"conditions": hookConditions, "ca": hookCA,
				}},
				kind: check.MutatingWebhooks, name: webhookName, fits: hookFits,
			},
		}),
		Checks: slices.Concat(extensionChecks(), reachChecks(), webhookChecks()),
	}
}

func extensionQuestions() []steps.Question {
	return []steps.Question{
		{
			Key: "extension.image", Title: "Image of the extension", Kind: steps.Text, NotFromPeer: true, Check: validNFSImage,
			Default: defaultImage, Adopt: adoptExtensionImage,
			Help: "carrick's image is in no public registry. make image IMAGE=REGISTRY/carrick:TAG builds the image from this " +
				"source, without a daemon, and pushes it to your registry. The guest's nodes must be able to pull from that " +
				"registry. Enter a name with a tag or a digest.",
		},
		{
			Key: "extension.replicas", Title: "Number of extension pods", Kind: steps.Number, Check: steps.Between(1, 5),
			Adopt:   adoptReplicas,
			Help:    "A number from 1 to 5. Each pod serves admission reviews, but only the leader watches profiles.",
			Default: steps.Fixed(2, "default; one pod can be unavailable"),
		},
	}
}

func extensionActions() []steps.Action {
	carrick, upstream := both(runsCarrick, runsExtension), runsUpstream
	act := func(name, title, file string, when func(steps.Env) bool, values action.Values) steps.Action {
		return steps.Action{
			Name: name, Title: title, On: steps.Local, Needs: []string{"extension-namespace"}, When: when,
			Doer: action.Manifest{File: file, Values: values},
		}
	}
	roles := act("extension-roles", "Allow the extension to watch profiles", "", both(carrick, followsProfiles), nil)
	roles.Doer = followerRoles{action.Manifest{File: "extension-roles.yaml"}}
	psp := act(
		"extension-psp", "Allow the extension's pods to use the PodSecurityPolicy", "psp-space.yaml", pspBranch, nil,
	)
	psp.Doer = action.Manifest{File: "psp-space.yaml", Each: eachSpace(extensionSpace)}
	return []steps.Action{
		psp,
		act("extension-account", "Create the extension's ServiceAccount", "extension-account.yaml", nil, nil),
		roles,
		act(
			"extension-upstream-roles", "Allow the extension to read namespaces and profiles", "extension-upstream-roles.yaml",
			upstream, nil,
		),
		act(
			"extension-upstream-psp", "Allow the extension to bind profiles to a PodSecurityPolicy",
			"extension-upstream-psp.yaml",
			both(upstream, followsProfiles),
			nil,
		),
		act("extension-config", "Set the StorageClass in the extension's ConfigMap", "extension-config.yaml", upstream, nil),
		wholeObject(
			check.Deployments, programFits,
			act(
				"extension", "Create the extension's Deployment", "extension.yaml", carrick,
				action.Values{"args": extensionArgs, "token": truth(followsProfiles)},
			),
		),
		wholeObject(
			check.Deployments, programFits,
			act(
				"extension-upstream", "Create the published program's Deployment", "extension-upstream.yaml", upstream,
				action.Values{"cause": upstreamCause},
			),
		),
		wholeObject(
			check.Services, serviceFits,
			act(
				"extension-service", "Create the extension's Service", "extension-service.yaml", usesWebhook,
				action.Values{"port": func(_ context.Context, e steps.Env) (any, error) { return hookPort(e), nil }},
			),
		),
	}
}

// followerRoles creates the RBAC objects that allow carrick's extension to bind profiles to a PodSecurityPolicy. No
// link owns the RoleBindings that the extension itself creates. An undo lists these RoleBindings and keeps them,
// because pods depend on them.
type followerRoles struct{ action.Manifest }

// PlanUndo also lists the RoleBindings that the extension created and that the undo keeps.
func (r followerRoles) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := r.Manifest.PlanUndo(ctx, e)
	if err != nil || len(c.Items) == 0 {
		return c, err
	}
	all, err := check.List[rbacv1.RoleBinding](
		ctx, e.Cluster, check.RoleBindings, "", cluster.Selector{Labels: watcher.Made},
	)
	if apierrors.IsForbidden(err) {
		return c, nil // a note is no reason to require another permission for undo
	}
	if err != nil || len(all) == 0 {
		return c, err
	}
	var names []string
	for _, b := range all {
		names = append(names, b.Namespace+"/"+b.Name)
	}
	c.Items = append(c.Items, steps.Item{
		Verb: steps.Leave, What: fmt.Sprintf("RoleBindings that the extension created: %s", check.Some(names)),
		Note: fmt.Sprintf(
			"the profiles' pods still depend on these RoleBindings. Pod security levels that the extension set on namespaces "+
				"also remain. To delete the RoleBindings: %s delete rolebindings -A -l %s",
			e.Kubectl(), watcher.Made,
		),
	})
	return c, nil
}

// wholeObject returns action a with a wholeDoer for the single object in the action's manifest. fits reports whether an
// unmanaged object can be kept.
func wholeObject(
	kind schema.GroupVersionResource, fits func(context.Context, steps.Env) (bool, error), a steps.Action,
) steps.Action {
	m, _ := a.Doer.(action.Manifest)
	a.Doer = wholeDoer{Manifest: m, kind: kind, in: extensionSpace, name: extensionName, fits: fits}
	return a
}

// runsExtension reports whether the guide requires the extension. The extension serves the webhook, binds profiles, or
// both.
func runsExtension(e steps.Env) bool { return usesWebhook(e) || followsProfiles(e) }

// followsProfiles reports whether the extension binds profiles to a PodSecurityPolicy.
func followsProfiles(e steps.Env) bool { return pspBranch(e) && e.Answers.Bool("security.follow") }

// runsUpstream reports whether the extension is the published program. Without a webhook, the
// extension is always carrick's program.
func runsUpstream(e steps.Env) bool {
	return usesWebhook(e) && e.Answers.Text("extension.program") == byUpstream
}

func runsCarrick(e steps.Env) bool { return !runsUpstream(e) }

func extensionSpace(e steps.Env) string { return e.Answers.Text("extension.namespace") }

func truth(is func(steps.Env) bool) func(context.Context, steps.Env) (any, error) {
	return func(_ context.Context, e steps.Env) (any, error) { return is(e), nil }
}

// hookPort returns the port on which the pods serve admission reviews.
func hookPort(e steps.Env) int {
	if runsUpstream(e) {
		return upstreamPort
	}
	return carrickPort
}

// extensionArgs returns the command-line arguments of carrick's program.
func extensionArgs(_ context.Context, e steps.Env) (any, error) {
	out := []string{"vsphere-extension", "--health-probe-bind-address=:8081"}
	if usesWebhook(e) {
		out = append(out, "--bind-address=:8443", "--cert-dir=/certificate", "--class="+sharedClassName(e))
		for _, from := range e.Answers.List("mutation.replaces") {
			out = append(out, "--from="+from)
		}
	}
	if followsProfiles(e) {
		out = append(out, "--psp-role="+pspRole, "--level="+level(e),
			"--leader-elect", "--leader-elect-resource-namespace="+extensionSpace(e),
			"--leader-elect-resource-name="+extensionName)
	}
	return out, nil
}

// upstreamCause returns a hash of the StorageClass and the certificate, for an annotation of the
// pod template. The published program reads both only at startup, so a changed hash restarts its
// pods.
func upstreamCause(ctx context.Context, e steps.Env) (any, error) {
	s, err := extensionCertificate(ctx, e)
	if err != nil {
		return nil, err
	}
	return steps.HashOf(sharedClassName(e) + "\n" + s.Data["tls.crt"].Reveal())[:12], nil
}

// hookConditions returns match conditions that exclude every claim that must not be changed. It
// returns nil if the API server does not support match conditions. The extension then checks the
// conditions itself.
func hookConditions(_ context.Context, e steps.Env) (any, error) {
	if knows, err := e.Own.Value("serves-conditions"); err != nil || knows != true {
		return nil, err
	}
	return []any{
		map[string]any{"name": "rwx", "expression": sharedClaim},
		map[string]any{"name": "no-volume-by-name", "expression": unnamedVolume},
		map[string]any{"name": "vsphere-class-or-none", "expression": exchanged(e)},
	}, nil
}

// hookCA returns the webhook's CA bundle in base64. carrick always writes the bundle itself, so no CA injector is
// required.
func hookCA(_ context.Context, e steps.Env) (any, error) {
	text, err := e.Own.Text("extension-ca")
	return base64.StdEncoding.EncodeToString([]byte(text)), err
}

func defaultImage(e steps.Env) (any, string) {
	if runsUpstream(e) {
		return upstreamImage, "the published guide"
	}
	return nil, ""
}

func extensionPermissions(e steps.Env) []permission.Rule {
	if !runsExtension(e) {
		return nil
	}
	in := extensionSpace(e)
	out := slices.Concat(
		check.ToApply(in, check.ServiceAccounts, check.Deployments),
		check.ToFollow(in, check.Pods, check.NetworkPolicies, check.ConfigMaps), check.Verbs("", "pods/log", in, "get"),
		check.ToFollow("", check.ClusterRoleBindings),
	)
	if usesWebhook(e) {
		out = slices.Concat(
			out, check.ToApply(in, check.Services), check.ToFollow(in, check.EndpointSlices),
			check.ToApply("", check.MutatingWebhooks),
		)
	}
	if runsUpstream(e) {
		out = slices.Concat(
			out, check.ToApply(in, check.ConfigMaps, check.Roles, check.RoleBindings),
			check.ToApply("", check.ClusterRoles, check.ClusterRoleBindings),
		)
	}
	if followsProfiles(e) {
		out = slices.Concat(
			out, check.ToApply(in, check.Roles, check.RoleBindings),
			check.ToApply("", check.ClusterRoles, check.ClusterRoleBindings), followerPermissions(e),
		)
	}
	return out
}

// followerPermissions returns the permissions that carrick grants to its program. The admin must also have them,
// because RBAC lets users grant only permissions that they have.
func followerPermissions(e steps.Env) []permission.Rule {
	return slices.Concat(
		check.To([]string{"list", "watch", "patch"}, "", check.Namespaces), check.ToFollow("", profileKind),
		check.To([]string{"get", "list", "create"}, "", check.RoleBindings),
		[]permission.Rule{{Verb: "bind", Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: pspRole}},
		check.Verbs("coordination.k8s.io", "leases", extensionSpace(e), "get", "create", "update"),
	)
}
