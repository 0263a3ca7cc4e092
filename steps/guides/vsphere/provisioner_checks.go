package vsphere

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

// noSelfLink is the first Kubernetes minor version in which objects have no selfLink.
const noSelfLink = 20

func provisionerReady(ctx context.Context, e steps.Env) steps.Result {
	e.Cluster.StartList("", check.ResourceQuotas)
	var p *provisioner
	err := check.Together(
		func() (err error) { p, err = theProvisioner(ctx, e); return err },
		func() error { _, _, _ = apiServer(ctx, e); return nil }, // prefetch for egressDenied, which reports errors
	)
	if err != nil {
		return steps.Errored(err)
	}
	if p == nil {
		return steps.Undone(fmt.Sprintf("namespace %s has no NFS provisioner", nfsSpace(e)))
	}
	e.Cluster.StartList(p.Namespace, check.NetworkPolicies)
	v, err := e.Cluster.Version(ctx)
	if err != nil {
		return steps.Errored(err)
	}
	log, logErr := provisionerLog(ctx, e, p)
	if strings.Contains(log, "selfLink was empty") || (isOldImage(p.image) && v.Minor >= noSelfLink) {
		return steps.Failed(
			fmt.Sprintf(
				"%s runs %s, which creates no volumes on Kubernetes 1.%d or later (selfLink was empty). The cluster runs %s",
				p.at(), p.image,
				noSelfLink, v.Git,
			),
			oldFix(e, p),
		)
	}
	if p.Spec.Replicas != nil && *p.Spec.Replicas == 0 {
		return steps.Failed(
			p.at()+" is scaled to 0 replicas",
			check.ScaleUp(e, "deployment", p.Namespace, p.Name),
		)
	}
	r := check.AvailableNow(e, p.Deployment, logFix(e, p))
	if r.Status != steps.Pass {
		return stuck(ctx, e, p, r)
	}
	server, path := nfsServer(e), e.Answers.Text("nfs.path")
	if p.server != "" && p.path != "" && (p.server != server ||
		strings.TrimRight(p.path, "/") != strings.TrimRight(path, "/")) {
		return steps.Failed(
			fmt.Sprintf("%s creates volumes on %s:%s, but the answers configure %s", p.at(), p.server, p.path, nfsExported(e)),
			e.ApplyStep("nfs")+"\n# or set nfs.server and nfs.path to the provisioner's values: carrick "+e.LinkFile(),
		)
	}
	for _, threat := range []func() (string, string, error){
		func() (string, string, error) { return egressDenied(ctx, e, p) },
		func() (string, string, error) { return quotaRefusesNextPod(ctx, e, p.Deployment) },
	} {
		found, fix, err := threat()
		if err != nil {
			return steps.Errored(err)
		}
		if found != "" {
			return steps.Warned(found, fix).WithoutAction()
		}
	}
	if logErr != nil {
		return steps.Passed("%s, %s. The provisioner's log cannot be read: %s", p.at(), p.image, failure.Explain(logErr))
	}
	return steps.Passed("%s, %s", p.at(), p.image)
}

// isOldImage reports whether image is a version of the provisioner that requires selfLink. Upstream's current image has
// another name.
func isOldImage(image string) bool { return strings.Contains(image, "nfs-client-provisioner") }

func oldFix(e steps.Env, p *provisioner) string {
	remove := fmt.Sprintf("%s -n %s delete deployment %s", e.Kubectl(), p.Namespace, p.Name)
	if r := p.release(); r != "" {
		remove = fmt.Sprintf("%s -n %s uninstall %s", e.Helm(), p.Namespace, steps.Quoted(r))
	}
	return remove +
		"    # existing volumes stay in use, but are no longer deleted with their claims\n# then: " +
		e.ApplyStep("nfs")
}

func logFix(e steps.Env, p *provisioner) string {
	return fmt.Sprintf("%s -n %s logs deployment/%s --tail=50", e.Kubectl(), p.Namespace, p.Name)
}

// provisionerLog returns the end of the log of the provisioner's newest started pod, or "" if no
// pod has started yet.
func provisionerLog(ctx context.Context, e steps.Env, p *provisioner) (string, error) {
	pods, err := check.PodsOf(ctx, e.Cluster, p.Deployment)
	if err != nil {
		return "", err
	}
	var newest *corev1.Pod
	for _, pod := range pods {
		if hasStarted(pod) && (newest == nil || pod.CreationTimestamp.After(newest.CreationTimestamp.Time)) {
			newest = pod
		}
	}
	if newest == nil {
		return "", nil
	}
	return check.PodLog(ctx, e.Cluster, newest, "", 200, 30*time.Second)
}

// stuck returns the verdict on a Deployment that is not available. If the cause is known, the verdict names it.
// Otherwise stuck returns r.
func stuck(ctx context.Context, e steps.Env, p *provisioner, r steps.Result) steps.Result {
	if why := check.ReplicaFailure(p.Deployment); why != "" {
		return steps.Failed(fmt.Sprintf("pods of %s are rejected: %s", p.at(), clean.Text(why)), levelFix(e, p.Namespace))
	}
	pods, err := check.PodsOf(ctx, e.Cluster, p.Deployment)
	if err != nil {
		return r
	}
	for _, pod := range pods {
		for _, s := range pod.Status.ContainerStatuses {
			if w := s.State.Waiting; w != nil && strings.Contains(w.Reason, "Image") {
				return steps.Failed(
					fmt.Sprintf("pod %s cannot pull image %s: %s", pod.Name, clean.Text(s.Image), clean.Text(w.Message)),
					answer(e, "nfs.image", "a copy that the nodes can pull"),
				)
			}
		}
	}
	return r
}

func provisionerNamed(ctx context.Context, e steps.Env) steps.Result {
	c, err := theClass(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	p, err := theProvisioner(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	switch {
	case p == nil:
		return steps.Skipped("the NFS provisioner does not exist")
	case p.name != c.Provisioner:
		return steps.Failed(
			fmt.Sprintf(
				"StorageClass %s has provisioner %s, but %s is configured as %s, so the Deployment creates no volumes of that "+
					"StorageClass", c.Name,
				clean.Text(c.Provisioner), p.at(), p.name,
			),
			fmt.Sprintf(
				"%s -n %s set env deployment/%s PROVISIONER_NAME=%s    # the provisioner of a StorageClass is immutable",
				e.Kubectl(),
				p.Namespace,
				p.Name, steps.Quoted(c.Provisioner),
			),
		)
	}
	return steps.Passed("%s, in StorageClass %s and in %s", p.name, c.Name, p.at())
}

func provisionerMay(ctx context.Context, e steps.Env) steps.Result {
	e.Cluster.StartList("", check.RoleBindings)
	p, err := theProvisioner(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if p == nil {
		return steps.Skipped("the NFS provisioner does not exist")
	}
	account := p.Spec.Template.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	who := check.Account{Namespace: p.Namespace, Name: account}
	user := who.User()
	var lacks, lacksNodes []string
	var found, fix string
	if err := check.Together(
		func() (err error) {
			lacks, err = check.Denied(ctx, e.Cluster, user, true, provisionerPermissions(p.Namespace)...)
			return err
		},
		func() (err error) {
			lacksNodes, err = check.Denied(ctx, e.Cluster, user, true, nodePermissions()...)
			return err
		},
		func() (err error) {
			found, fix, err = adminBindings(ctx, e, p, who)
			return err
		},
	); err != nil {
		return steps.Errored(err)
	}
	if len(lacks) > 0 {
		return steps.Failed(
			fmt.Sprintf("ServiceAccount %s/%s is not allowed to %s", p.Namespace, account, check.Some(lacks)),
			rightsFix(ctx, e, p, account)+"\n# "+logFix(e, p)+" | grep forbidden",
		)
	}
	if len(lacksNodes) > 0 {
		return steps.Warned(
			fmt.Sprintf(
				"ServiceAccount %s/%s is not allowed to %s. Claims of a StorageClass with WaitForFirstConsumer get no volume",
				p.Namespace,
				account, check.Some(lacksNodes),
			),
			nodeRightsFix(ctx, e, p, account),
		)
	}
	if found != "" {
		return steps.Warned(
			found+". Anyone who can run a pod in namespace "+p.Namespace+" gets these permissions", fix,
		).WithoutAction()
	}
	return steps.Passed("ServiceAccount %s/%s has all permissions of upstream's roles", p.Namespace, account)
}

// rightsFix returns the command that restores the provisioner's permissions. Upstream derives the names of the roles
// from the provisioner's name.
func rightsFix(ctx context.Context, e steps.Env, p *provisioner, account string) string {
	if by, err := p.made(ctx, e); err == nil && by != "" {
		return e.ApplyStep("nfs")
	}
	role := p.Name + "-runner"
	if _, err := e.Cluster.Get(ctx, check.ClusterRoles, "", role); err == nil {
		binding := "run-" + p.Name
		if _, err := e.Cluster.Get(ctx, check.ClusterRoleBindings, "", binding); err == nil { // binds another role or account
			binding = role
		}
		return fmt.Sprintf("%s create clusterrolebinding %s --clusterrole=%s --serviceaccount=%s:%s",
			e.Kubectl(), binding, role, p.Namespace, account)
	}
	if r := p.release(); r != "" {
		return fmt.Sprintf("%s -n %s upgrade %s %s --repo %s --version %s --reuse-values    # recreates its roles",
			e.Helm(), p.Namespace, steps.Quoted(r), nfsChart, steps.Quoted(e.Answers.Text("nfs.source")),
			steps.Quoted(e.Answers.Text("nfs.version")))
	}
	return "apply deploy/rbac.yaml of " + nfsChart + " with namespace " + p.Namespace
}

// nodeRightsFix returns the command that allows the provisioner to read nodes. The roles of older charts do not grant
// this permission.
func nodeRightsFix(ctx context.Context, e steps.Env, p *provisioner, account string) string {
	if by, err := p.made(ctx, e); err == nil && by != "" {
		return e.ApplyStep("nfs")
	}
	return fmt.Sprintf("%[1]s create clusterrole %[2]s-nodes --verb=get,list,watch --resource=nodes\n"+
		"%[1]s create clusterrolebinding %[2]s-nodes --clusterrole=%[2]s-nodes --serviceaccount=%[3]s:%[4]s",
		e.Kubectl(), p.Name, p.Namespace, account)
}

func provisionerLevel(ctx context.Context, e steps.Env) steps.Result {
	name := nfsSpace(e)
	if p, err := theProvisioner(ctx, e); err != nil {
		return steps.Errored(err)
	} else if p != nil {
		name = p.Namespace
	}
	ns, err := check.Get[corev1.Namespace](ctx, e.Cluster, check.Namespaces, "", name)
	if apierrors.IsNotFound(err) {
		return steps.Undone("namespace " + name + " does not exist")
	}
	if err != nil {
		return steps.Errored(err)
	}
	fix := levelFix(e, name)
	if inventory.CreatedBy(ns.Annotations) == "" { // other users might run pods in this namespace
		fix = strings.Replace(fix, " label ", " label --dry-run=server ", 1) +
			"    # shows which pods would be rejected; without --dry-run=server, the command sets the level"
	}
	switch level := clean.Text(ns.Labels[check.EnforceLabel]); level {
	case check.Baseline:
		return steps.Passed("namespace %s enforces baseline", name)
	case check.Restricted:
		return steps.Failed(
			fmt.Sprintf("namespace %s enforces restricted, which rejects the provisioner's next pod", name),
			fix,
		)
	case "":
		if pspBranch(e) {
			return steps.Warned(
				fmt.Sprintf("namespace %s has no pod security level. After an upgrade to 1.26, restricted applies", name), fix,
			)
		}
		return steps.Warned(
			fmt.Sprintf(
				"namespace %s has no pod security level. Tanzu releases from 1.26 on enforce restricted in such a namespace and "+
					"reject the provisioner's pod",
				name,
			),
			fix,
		)
	default:
		return steps.Warned(
			fmt.Sprintf("namespace %s enforces %s, which allows more than the provisioner needs", name, level), fix,
		)
	}
}

func levelFix(e steps.Env, namespace string) string {
	return fmt.Sprintf("%s label namespace %s %s=baseline --overwrite", e.Kubectl(), namespace, check.EnforceLabel)
}
