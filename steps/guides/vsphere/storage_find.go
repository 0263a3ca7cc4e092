package vsphere

import (
	"cmp"
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

// nativeClass returns the name of a StorageClass of the vSphere CSI driver, preferably the default
// StorageClass. It avoids WaitForFirstConsumer if possible, because an unused claim of such a
// StorageClass stays Pending and proves nothing.
func nativeClass(ctx context.Context, e steps.Env) (any, error) {
	all, err := allClasses(ctx, e)
	if err != nil {
		return nil, err
	}
	own := slices.DeleteFunc(all, func(c *storagev1.StorageClass) bool { return c.Provisioner != vSphereCSI })
	if len(own) == 0 {
		return nil, steps.Absent("no StorageClass has provisioner %s", vSphereCSI)
	}
	rank := func(c *storagev1.StorageClass) int {
		switch {
		case waitsForPod(c):
			return 2
		case isDefault(c):
			return 0
		}
		return 1
	}
	return slices.MinFunc(own, func(a, b *storagev1.StorageClass) int { return rank(a) - rank(b) }).Name, nil
}

func waitsForPod(c *storagev1.StorageClass) bool {
	return c.VolumeBindingMode != nil && *c.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// csiNFS is the provisioner of csi-driver-nfs (kubernetes-csi/csi-driver-nfs: pkg/nfs/nfs.go).
const csiNFS = "nfs.csi.k8s.io"

// sharedClass returns the name of a StorageClass that supports ReadWriteMany and belongs neither to
// the vSphere CSI driver nor to an NFS provisioner. Either a ReadWriteMany claim of the
// StorageClass is bound, or its provisioner is csi-driver-nfs.
func sharedClass(ctx context.Context, e steps.Env) (any, error) {
	var classes []*storagev1.StorageClass
	var claims []*corev1.PersistentVolumeClaim
	var theirs []provisioner
	err := check.Together(
		func() (err error) { classes, err = allClasses(ctx, e); return err },
		func() (err error) {
			claims, err = check.List[corev1.PersistentVolumeClaim](ctx, e.Cluster, check.VolumeClaims, "", cluster.Selector{})
			return err
		},
		func() (err error) { theirs, err = provisioners(ctx, e, ""); return err },
	)
	if err != nil {
		return nil, err
	}
	for _, c := range classes {
		byFolders := slices.ContainsFunc(theirs, func(p provisioner) bool { return p.name == c.Provisioner })
		bound := slices.ContainsFunc(claims, func(p *corev1.PersistentVolumeClaim) bool {
			return isShared(p) && isBound(p) && claimClass(p) == c.Name
		})
		if c.Provisioner != vSphereCSI && !byFolders && (bound || c.Provisioner == csiNFS) {
			return c.Name, nil
		}
	}
	return nil, steps.Absent("no other StorageClass is known to have shared volumes")
}

func isShared(c *corev1.PersistentVolumeClaim) bool {
	return slices.Contains(c.Spec.AccessModes, corev1.ReadWriteMany)
}

func isBound(c *corev1.PersistentVolumeClaim) bool { return c.Status.Phase == corev1.ClaimBound }

// claimClass returns the StorageClass that a claim names, or "" if it names none.
func claimClass(c *corev1.PersistentVolumeClaim) string {
	if c.Spec.StorageClassName == nil {
		return ""
	}
	return *c.Spec.StorageClassName
}

// provisioner is a Deployment that creates volumes as directories on an NFS server. It can be any
// of the three generations of upstream's provisioner
// (kubernetes-sigs/nfs-subdir-external-provisioner: cmd; helm/charts:
// stable/nfs-client-provisioner).
type provisioner struct {
	*appsv1.Deployment
	image              string
	name, server, path string // PROVISIONER_NAME, NFS_SERVER, NFS_PATH
	unbound            bool   // no ClusterRoleBinding allows it to create volumes
}

// release returns the Helm release that installed the provisioner, or "".
func (p provisioner) release() string {
	return cmp.Or(p.Annotations[helmRelease], p.Labels["release"])
}

// chart returns the name and version of the Helm chart that installed the provisioner, or "".
func (p provisioner) chart() string {
	return cmp.Or(p.Labels["chart"], p.Labels["helm.sh/chart"])
}

// made returns the link that installed the provisioner, or "" if no link did.
func (p provisioner) made(ctx context.Context, e steps.Env) (string, error) {
	return inventory.Installer(ctx, e, p.Namespace, p.release(), inventory.CreatedBy(p.Annotations))
}

// at returns the Deployment's namespace and name, separated by a slash.
func (p provisioner) at() string { return p.Namespace + "/" + p.Name }

// createVolumes is the rule in upstream's ClusterRole that allows a provisioner to create volumes
// (chart: clusterrole.yaml).
var createVolumes = rbacv1.PolicyRule{
	APIGroups: []string{volumeKind.Group}, Resources: []string{volumeKind.Resource}, Verbs: []string{"create"},
}

// provisioners returns the cluster's NFS provisioners that are allowed to create volumes. If unboundIn is not "", it
// appends the provisioners in that namespace that do not have this permission. The environment variables alone prove
// nothing. Any user of a namespace can create a Deployment with any variables, even those of the guest's own driver,
// but cannot create a ClusterRoleBinding.
func provisioners(ctx context.Context, e steps.Env, unboundIn string) ([]provisioner, error) {
	e.Cluster.StartList("", check.StorageClasses, check.ClusterRoleBindings, check.ClusterRoles)
	all, err := check.List[appsv1.Deployment](ctx, e.Cluster, check.Deployments, "", cluster.Selector{})
	if err != nil {
		return nil, err
	}
	var out, unbound []provisioner
	for _, d := range all {
		for _, c := range d.Spec.Template.Spec.Containers {
			p := provisioner{
				Deployment: d, image: clean.Text(c.Image), name: podVariable(c.Env, "PROVISIONER_NAME"),
				server: podVariable(c.Env, "NFS_SERVER"), path: podVariable(c.Env, "NFS_PATH"),
			}
			if p.name == "" || p.name == vSphereCSI || !hasVariable(c.Env, "NFS_SERVER") {
				continue
			}
			may, err := check.GrantedEverywhere(ctx, e.Cluster, d.Namespace, d.Spec.Template.Spec, createVolumes)
			if err != nil {
				return nil, err
			}
			if p.unbound = !may; may {
				out = append(out, p)
			} else if d.Namespace == unboundIn {
				unbound = append(unbound, p)
			}
		}
	}
	return append(out, unbound...), nil
}

func hasVariable(env []corev1.EnvVar, name string) bool {
	return slices.ContainsFunc(env, func(v corev1.EnvVar) bool { return v.Name == name })
}

func podVariable(env []corev1.EnvVar, name string) string {
	for _, v := range env {
		if v.Name == name {
			return clean.Text(v.Value)
		}
	}
	return ""
}

// nfsExists returns the fact about the existing NFS provisioner. It prefers a provisioner that a StorageClass names.
// Otherwise it uses a provisioner from the same Helm release as a StorageClass, even if the provisioner names differ.
// If several provisioners match one StorageClass, nfsExists returns an AbsentError.
func nfsExists(ctx context.Context, e steps.Env) (any, error) {
	all, err := provisioners(ctx, e, "")
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, steps.Absent(
			"no Deployment that is allowed to create PersistentVolumes is configured as an NFS provisioner",
		)
	}
	classes, err := allClasses(ctx, e)
	if err != nil {
		return nil, err
	}
	for _, fits := range []func(provisioner, *storagev1.StorageClass) bool{provisioner.named, provisioner.released} {
		for _, c := range classes {
			of := slices.DeleteFunc(slices.Clone(all), func(p provisioner) bool { return !fits(p, c) })
			switch {
			case len(of) == 1:
				return of[0].fact(c), nil
			case len(of) > 1:
				return nil, steps.Absent("Deployments %s and %s are both configured as the provisioner of StorageClass %s",
					clean.Name(of[0].at()), clean.Name(of[1].at()), c.Name)
			}
		}
	}
	return nil, steps.Absent(
		"Deployment %s is configured as an NFS provisioner, but no StorageClass refers to it", clean.Name(all[0].at()),
	)
}

// Annotations that Helm sets on the objects that it installs.
const (
	helmRelease   = "meta.helm.sh/release-name"
	helmNamespace = "meta.helm.sh/release-namespace"
)

// named reports whether c names the provisioner. It returns false if a Helm release in another namespace installed c.
func (p provisioner) named(c *storagev1.StorageClass) bool {
	space := c.Annotations[helmNamespace]
	return p.name == c.Provisioner && (space == "" || space == p.Namespace)
}

// released reports whether the Helm release that installed c also installed the provisioner.
func (p provisioner) released(c *storagev1.StorageClass) bool {
	release := c.Annotations[helmRelease]
	return release != "" && release == p.release() && c.Annotations[helmNamespace] == p.Namespace &&
		c.Provisioner != vSphereCSI
}

// fact returns the fact about the provisioner with StorageClass c. If the provisioner has no StorageClass, c must be
// the zero StorageClass.
func (p provisioner) fact(c *storagev1.StorageClass) map[string]any {
	return map[string]any{
		// Reports whether the StorageClass belongs to a Helm release in the provisioner's namespace. Otherwise any user of
		// that namespace might have created the Deployment.
		"released": c.Annotations[helmNamespace] == p.Namespace,
		"name":     p.Name, "namespace": p.Namespace, "release": p.release(), "chart": p.chart(), "provisioner": p.name,
		"image":  p.image,
		"server": p.server, "path": p.path, "class": c.Name,
	}
}

// nfsThere returns the fact about the provisioner in namespace nfs.namespace. The provisioner must
// belong to the Helm release nfs.release or be installed without Helm.
func nfsThere(ctx context.Context, e steps.Env) (any, error) {
	inventory.Start(e)
	all, err := provisioners(ctx, e, nfsSpace(e))
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if r := p.release(); p.Namespace == nfsSpace(e) && (r == "" || r == e.Answers.Text("nfs.release")) {
			out := p.fact(&storagev1.StorageClass{})
			out["made"], err = p.made(ctx, e)
			return out, err
		}
	}
	return nil, steps.Absent("namespace %s has no NFS provisioner", nfsSpace(e))
}

// theProvisioner returns the provisioner in namespace nfs.namespace, or else the only provisioner of the StorageClass
// for shared volumes. It returns nil if there is none. It returns a provisioner without a ClusterRoleBinding only if
// that provisioner is in nfs.namespace and no provisioner in that namespace has the binding.
func theProvisioner(ctx context.Context, e steps.Env) (*provisioner, error) {
	all, err := provisioners(ctx, e, nfsSpace(e))
	if err != nil || len(all) == 0 {
		return nil, err
	}
	c, err := theClass(ctx, e)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	ns, release := nfsSpace(e), e.Answers.Text("nfs.release")
	for _, fits := range []func(provisioner) bool{
		func(p provisioner) bool { return p.Namespace == ns && p.release() == release && !p.unbound },
		func(p provisioner) bool { return p.Namespace == ns && !p.unbound },
		func(p provisioner) bool { return p.Namespace == ns && p.release() == release },
		func(p provisioner) bool { return p.Namespace == ns },
		func(p provisioner) bool { return !p.unbound && c != nil && (p.named(c) || p.released(c)) },
	} {
		if of := slices.DeleteFunc(slices.Clone(all), func(p provisioner) bool { return !fits(p) }); len(of) == 1 {
			return &of[0], nil
		}
	}
	return nil, nil
}

// theClass returns the StorageClass for shared volumes.
func theClass(ctx context.Context, e steps.Env) (*storagev1.StorageClass, error) {
	o, err := check.FromList(ctx, e.Cluster, check.StorageClasses, "", sharedClassName(e))
	if err != nil {
		return nil, err
	}
	return check.As[storagev1.StorageClass](o)
}

// tryingActions lists the actions that create test claims.
var tryingActions = []string{"claim", "native-try"}

// adoptSpace adopts the namespace of this link's existing test claims.
func adoptSpace(ctx context.Context, e steps.Env) (any, string, error) {
	for _, action := range tryingActions {
		claims, err := inventory.MadeBy(ctx, e, check.VolumeClaims, action)
		if err != nil {
			return nil, "", err
		}
		if len(claims) > 0 {
			return claims[0].Namespace, "claim " + claims[0].Name, nil
		}
	}
	return nil, "", nil
}

// adoptTry adopts whether to test the guest's own volumes: true if the test claim for these volumes
// exists, and false if an NFS provisioner already exists.
func adoptTry(ctx context.Context, e steps.Env) (any, string, error) {
	claims, err := inventory.MadeBy(ctx, e, check.VolumeClaims, "native-try")
	if err != nil {
		return nil, "", err
	}
	if len(claims) > 0 {
		return true, "claim " + claims[0].Name, nil
	}
	stands, err := e.Own.Value("nfs-stands")
	if err != nil {
		return steps.AdoptFact(nil, err, "")
	}
	return false, "Deployment " + factField(stands, "namespace") + "/" + factField(stands, "name") +
		", the existing NFS provisioner", nil
}
