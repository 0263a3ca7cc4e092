package ondemand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/check"
)

// userIDMap returns the data of the given ConfigMap. Its keys are users' namespaces.
func userIDMap(ctx context.Context, e steps.Env, name string) (map[string]string, error) {
	ns, err := mapsNamespace(e)
	if err != nil {
		return nil, err
	}
	e.Cluster.StartGet(check.ConfigMaps, ns, uidMap) // callers usually need both ConfigMaps
	e.Cluster.StartGet(check.ConfigMaps, ns, gidMap)
	m, err := check.Get[corev1.ConfigMap](ctx, e.Cluster, check.ConfigMaps, ns, name)
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}

func mapsKnow(ctx context.Context, e steps.Env) steps.Result {
	at, err := mapsNamespace(e)
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) {
		return steps.Failed(
			absent.Why, "helm repo add k8-ldap-configmap https://osc.github.io/k8-ldap-configmap && "+e.Helm()+
				" install k8-ldap-configmap k8-ldap-configmap/k8-ldap-configmap -n k8-ldap-configmap --create-namespace --set "+
				"userPrefix="+steps.Quoted(namespacePrefix(e))+
				" --set ldapUrl=LDAP-URL --set ldapUserBaseDN=DN --set ldapGroupBaseDN=DN    # or create the two ConfigMaps "+
				"manually: data: {NAMESPACE: \"UID\"}",
		)
	}
	if err != nil {
		return steps.Errored(err)
	}
	spaces, err := userNamespaces(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	maps := []string{uidMap, gidMap}
	if allGroups(e) {
		maps = append(maps, gidsMap)
	}
	for _, name := range maps {
		data, err := userIDMap(ctx, e, name)
		if name == gidsMap && apierrors.IsNotFound(err) {
			return steps.Failed(
				fmt.Sprintf(
					"ConfigMap %s/%s does not exist, but pods get all groups of their user (clusterfile.supplemental-groups). Every "+
						"pod of a user with more than one group is rejected", at, gidsMap,
				),
				e.Helm()+" upgrade k8-ldap-configmap k8-ldap-configmap/k8-ldap-configmap -n "+steps.Quoted(at)+
					" --reuse-values --set 'mappers={user-uid,user-gid,user-gids}'    # then "+e.ApplyStep("policies")+
					"; or set clusterfile.supplemental-groups to no",
			)
		}
		if apierrors.IsNotFound(err) {
			return steps.Failed(
				fmt.Sprintf("ConfigMap %s/%s does not exist", at, name),
				e.Kubectl()+" get configmaps -A --field-selector metadata.name="+name+
					"    # then set policies.maps-namespace to the namespace of k8-ldap-configmap",
			)
		}
		if err != nil {
			return steps.Errored(err)
		}
		var unknown, odd []string
		for _, ns := range spaces {
			text, ok := data[ns.Name]
			if !ok {
				unknown = append(unknown, ns.Name)
			} else if slices.ContainsFunc(idsIn(name, text), func(id int64) bool { return id < 1 }) {
				odd = append(odd, ns.Name)
			}
		}
		fix := e.Kubectl() + " -n " + steps.Quoted(at) + " get configmap " + name +
			" -o yaml    # its keys must be namespaces: set userPrefix in k8-ldap-configmap's values to " +
			steps.Quoted(namespacePrefix(e))
		switch {
		case len(odd) > 0:
			return steps.Failed(
				fmt.Sprintf("ConfigMap %s/%s has an invalid value (not a %s) for %s", at, name, idFormat[name], few(odd)), fix,
			)
		case len(unknown) > 0:
			return steps.Failed(
				fmt.Sprintf(
					"ConfigMap %s/%s (%d users) has no entry for %s. The policy rejects every pod in a namespace without an entry", at,
					name, len(data), few(unknown),
				),
				fix,
			)
		}
	}
	return steps.Passed("ConfigMaps in %s have entries for all %d users' namespaces", at, len(spaces))
}

func idsPinned(ctx context.Context, e steps.Env) steps.Result {
	if pinsIDs(e) {
		return ownPolicies(ctx, e)
	}
	types, err := e.Peer.List("mount-types")
	if err == nil && len(types) == 0 && e.Answers.Text("policies.level") == check.Restricted {
		return steps.Passed(
			"the cluster file mounts no site files, and the level restricted allows users to mount them only through a " +
				"PersistentVolumeClaim",
		)
	}
	by, err := otherPolicies(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if len(by) > 0 {
		return steps.Passed("%s check runAsUser; carrick does not check which values they allow", strings.Join(by, ", "))
	}
	return steps.Warned(
		"no policy on this cluster restricts the uid of pods. Users with kubectl can run pods as any user and read that "+
			"user's files wherever they are mounted",
		"set policies.ids to admission-policy, which uses the ConfigMaps of k8-ldap-configmap; or use Kyverno with "+
			"OSC/osc-helm-charts charts/kyverno-policies",
	)
}

func ownPolicies(ctx context.Context, e steps.Env) steps.Result {
	groups, unknown := groupsMap(ctx, e)
	at, nowhere := mapsNamespace(e)
	takes := map[string]any{uidPolicy: uidMap, gidPolicy: gidMap, groupsPolicy: groups}
	for _, name := range []string{uidPolicy, gidPolicy, groupsPolicy} {
		p, err := check.Get[admissionv1.ValidatingAdmissionPolicy](ctx, e.Cluster, check.ValidatingPolicies, "", name)
		if errors.Is(err, failure.ErrNotServed) {
			return steps.Failed(
				"the API server does not serve ValidatingAdmissionPolicy, which requires Kubernetes 1.30",
				"set policies.ids to none, and use Kyverno",
			)
		}
		if err != nil {
			return check.Missing(err, "ValidatingAdmissionPolicy "+name, "")
		}
		if t := p.Status.TypeChecking; t != nil && len(t.ExpressionWarnings) > 0 {
			w := t.ExpressionWarnings[0]
			return steps.Failed(
				"the API server cannot type-check ValidatingAdmissionPolicy "+name+" ("+clean.Text(w.FieldRef)+"): "+
					clean.Text(w.Warning),
				e.ApplyStep("policies"),
			)
		}
		b, err := check.Get[admissionv1.ValidatingAdmissionPolicyBinding](ctx, e.Cluster, check.ValidatingBindings, "", name)
		if err != nil {
			return check.Missing(err, "ValidatingAdmissionPolicyBinding "+name, "")
		}
		ref := b.Spec.ParamRef
		switch {
		case b.Spec.PolicyName != name || !slices.Contains(b.Spec.ValidationActions, admissionv1.Deny):
			return steps.Failed(
				fmt.Sprintf(
					"ValidatingAdmissionPolicyBinding %s does not deny pods (policy %s, actions %v)", name, b.Spec.PolicyName,
					b.Spec.ValidationActions,
				),
				"",
			)
		case ref == nil || ref.ParameterNotFoundAction == nil || *ref.ParameterNotFoundAction != admissionv1.DenyAction:
			return steps.Failed(
				fmt.Sprintf("ValidatingAdmissionPolicyBinding %s allows every pod if its ConfigMap is missing", name), "",
			)
		case nowhere == nil && ref.Namespace != at:
			return steps.Failed(
				fmt.Sprintf(
					"ValidatingAdmissionPolicyBinding %s reads its ConfigMap from namespace %s, not from %s", name,
					clean.Text(ref.Namespace), at,
				),
				"",
			)
		case unknown == nil && ref.Name != takes[name]:
			return steps.Failed(
				fmt.Sprintf("ValidatingAdmissionPolicyBinding %s uses ConfigMap %s, not %s", name, ref.Name, takes[name]), "",
			)
		}
	}
	return steps.Passed("uid, gid and groups are enforced by %s, %s and %s", uidPolicy, gidPolicy, groupsPolicy)
}

// otherPolicies returns the policies from other tools that mention runAsUser, formatted as "KIND NAME". It omits
// policies that only forbid root.
func otherPolicies(ctx context.Context, e steps.Env) ([]string, error) {
	var out []string
	find := func(kind string, objs []*unstructured.Unstructured, err error) error {
		if errors.Is(err, failure.ErrNotServed) {
			return nil
		}
		for _, o := range objs {
			if raw, _ := o.MarshalJSON(); strings.Contains(string(raw), "runAsUser") && !requiresNonRootOnly(o) {
				out = append(out, kind+" "+o.GetName())
			}
		}
		return err
	}
	own, err := e.Cluster.List(ctx, check.ValidatingPolicies, "", cluster.Selector{})
	if err := find("ValidatingAdmissionPolicy", own, err); err != nil {
		return nil, err
	}
	theirs, err := e.Cluster.List(ctx, kyvernoPolicies, "", cluster.Selector{})
	return out, find("Kyverno ClusterPolicy", theirs, err)
}

// requiresNonRootOnly reports whether a policy only forbids UID 0. It compares the policy's name with the names that
// common policy collections use.
func requiresNonRootOnly(o *unstructured.Unstructured) bool {
	return strings.HasPrefix(o.GetName(), "require-run-as-non-root") || strings.HasPrefix(o.GetName(), "require-non-root")
}

// adapterDefaults returns the resources that the adapter sets on an app's pod if submit.yml.erb sets none
// (OSC/ood_core: lib/ood_core/job/adapters/kubernetes/resources.rb).
func adapterDefaults() corev1.ResourceRequirements {
	most := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("4Gi"),
	}
	return corev1.ResourceRequirements{Requests: most, Limits: most}
}

// adapterPod returns a pod like those that the portal's adapter creates (OSC/ood_core:
// lib/ood_core/job/adapters/kubernetes/templates/pod.yml.erb). in is the user's namespace. mounts lists the types of
// the pod's mounts.
func adapterPod(ctx context.Context, e steps.Env, in string, mounts []string) (*unstructured.Unstructured, error) {
	uid, gid := idOf(ctx, e, uidMap, in), idOf(ctx, e, gidMap, in)
	no, yes := false, true
	pod := corev1.Pod{}
	pod.APIVersion, pod.Kind, pod.Name, pod.Namespace = "v1", "Pod", "carrick-preview", in
	pod.Labels = map[string]string{"job": pod.Name, "app.kubernetes.io/name": "carrick", managedLabel: userValue}
	pod.Annotations = map[string]string{lifetimeNote: "00h10m00s"}
	pod.Spec = corev1.PodSpec{
		RestartPolicy:   corev1.RestartPolicyNever,
		SecurityContext: &corev1.PodSecurityContext{RunAsUser: &uid, RunAsGroup: &gid, RunAsNonRoot: &yes, FSGroup: &gid},
		Containers: []corev1.Container{{
			Name: "app", Image: "registry.example.org/app", Command: []string{"true"}, Resources: adapterDefaults(),
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: &no, Privileged: &no,
				Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
		}},
	}
	if allGroups(e) {
		pod.Spec.SecurityContext.SupplementalGroups = groupsOf(ctx, e, gid, in)
	}
	for _, kind := range mounts {
		v := corev1.Volume{Name: kind}
		switch kind {
		case "host":
			v.HostPath = &corev1.HostPathVolumeSource{Path: "/home"}
		case "nfs":
			v.NFS = &corev1.NFSVolumeSource{Server: "nfs.example.org", Path: "/home"}
		default:
			continue
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, v)
		pod.Spec.Containers[0].VolumeMounts = append(
			pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: kind, MountPath: "/" + kind},
		)
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod)
	if err != nil {
		return nil, err
	}
	delete(raw, "status")
	unstructured.RemoveNestedField(raw, "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: raw}, nil
}

// idFormat describes the format of the values in each ConfigMap, for use in findings.
var idFormat = map[string]string{
	uidMap: "number above 0", gidMap: "number above 0", gidsMap: `JSON array of strings, such as ["5001"]`,
}

// idsIn returns the IDs in text, a value in the given ConfigMap. It returns -1 for each element that is not a number.
func idsIn(name, text string) []int64 {
	texts := []string{text}
	if name == gidsMap {
		if err := json.Unmarshal([]byte(text), &texts); err != nil {
			return []int64{-1}
		}
	}
	var ids []int64
	for _, t := range texts {
		id, err := strconv.ParseInt(t, 10, 64)
		if err != nil {
			id = -1
		}
		ids = append(ids, id)
	}
	return ids
}

// idOf returns the user's ID from the given ConfigMap, or 1000 if there is no valid ID. in is the user's namespace.
func idOf(ctx context.Context, e steps.Env, name, in string) int64 {
	data, err := userIDMap(ctx, e, name)
	if err != nil {
		return 1000
	}
	if n, err := strconv.ParseInt(data[in], 10, 64); err == nil {
		return n
	}
	return 1000
}

// allGroups reports whether the adapter adds the user's groups, except system groups, to each pod (OSC/ood_core:
// lib/ood_core/job/adapters/kubernetes/batch.rb, supplemental_groups, 86656b38).
func allGroups(e steps.Env) bool { return e.Answers.Bool("clusterfile.supplemental-groups") }

// groupsOf returns the supplemental groups that the adapter sets: the user's primary group gid and the user's groups in
// user-gids-map. It omits system groups.
func groupsOf(ctx context.Context, e steps.Env, gid int64, in string) []int64 {
	groups := []int64{gid}
	if data, err := userIDMap(ctx, e, gidsMap); err == nil {
		groups = append(groups, idsIn(gidsMap, data[in])...)
	}
	groups = slices.DeleteFunc(groups, func(g int64) bool { return g < firstUser })
	slices.Sort(groups)
	return slices.Compact(groups)
}
