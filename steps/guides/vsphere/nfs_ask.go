package vsphere

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

func nfsQuestions() []steps.Question {
	return []steps.Question{
		{
			Key: "nfs.server", Title: "NFS server", Kind: steps.HostName, Default: standingField("server"),
			Help: "A host name or address that the guest's nodes can reach, such as nfs.example.org.",
		},
		{
			Key: "nfs.path", Title: "Exported directory", Kind: steps.Path, NotFromPeer: true, Default: standingField("path"),
			Help: "The path that the server exports, such as /srv/nfs. Nodes also mount directories below this path.",
		},
		{
			Key: "nfs.networks", Title: "Networks from which the guest's nodes reach the NFS server", Kind: steps.CIDR,
			Many: true,
			Opt:  true,
			Help: "CIDRs for the export line, such as 10.0.0.0/24. With NSX, use the Supervisor's Egress CIDRs (vSphere " +
				"Client > Hosts and Clusters > the cluster > Configure > Namespaces > Network > Workload Network). Without NSX, " +
				"use the nodes' network. If empty, carrick uses the nodes' own addresses.",
		},
		{
			Key: "nfs.options", Title: "Mount options", Kind: steps.Text, Many: true, Opt: true, Adopt: adoptOptions,
			Check: checkOption,
			Help:  "Mount options for the root of the export and for every volume of the StorageClass, such as nfsvers=4.1.",
			Default: steps.Fixed(
				[]string{"nfsvers=4.1"}, "default; requires one port (2049) and no helper daemons on the nodes",
			),
		},
		{
			Key: "nfs.reclaim", Title: "Reclaim policy of volumes", Kind: steps.Pick, Adopt: adoptReclaim,
			Default: steps.Fixed("Delete", "the chart; nfs.archive keeps the directory"),
			Help: "Delete: the provisioner deletes the volume of a deleted claim, or renames the volume's directory " +
				"(nfs.archive). Retain: the directory and the PersistentVolume remain until you delete both.",
			Of: []steps.Choice{
				{Value: "Delete", Title: "Delete: the provisioner deletes or archives the volume"},
				{Value: "Retain", Title: "Retain: the volume remains"},
			},
		},
		{
			Key: "nfs.archive", Title: "Archive of deleted claims", Kind: steps.YesNo, Adopt: adoptArchive,
			Default: steps.Fixed(true, "the chart"),
			Help: "Yes: the directory of a deleted claim is kept as archived-NAME on the server. No: deleting a claim " +
				"erases its data.",
		},
		{
			Key: "nfs.namespace", Title: "Namespace of the provisioner", Kind: steps.Namespace,
			Default: standingOr("namespace", "nfs-provisioner", "default"),
			Help: "Use this namespace only for the provisioner. Its pod security level must be baseline, because the pod " +
				"runs as root.",
		},
		{
			Key: "nfs.release", Title: "Helm release of the provisioner", Kind: steps.Name,
			Default: standingOr("release", nfsChart, "the chart's name"),
			Help: "A release name, such as nfs-subdir-external-provisioner. The StorageClass refers to the provisioner as " +
				"cluster.local/RELEASE.",
		},
		{
			Key: "nfs.source", Title: "Source of the provisioner's chart", Kind: steps.Text, NotFromPeer: true,
			Check: check.ValidSource,
			Help: "A chart repository (https://…, oci://…), or a local directory that contains the directory " + nfsChart +
				".",
			Default: steps.Fixed("https://kubernetes-sigs.github.io/nfs-subdir-external-provisioner", "upstream"),
		},
		{
			Key: "nfs.version", Title: "Version of the provisioner's chart", Kind: steps.Text, Check: checkChartVersion,
			Adopt: adoptChartVersion,
			Help: "The last upstream version is 4.0.18. The chart has not been maintained since February 2024. To use " +
				"another provisioner, install csi-driver-nfs and set storage.source to class.",
			Default: steps.Fixed("4.0.18", "upstream's last version"),
		},
		{
			Key: "nfs.image", Title: "Image of the provisioner", Kind: steps.Text, NotFromPeer: true, Opt: true,
			Check: validNFSImage, Adopt: adoptNFSImage,
			Help: "A copy of the image with its tag, if nodes pull from a local registry. If empty, the chart's image is " +
				"used: registry.k8s.io/sig-storage/nfs-subdir-external-provisioner:v4.0.2",
		},
	}
}

// standingField returns a func for Question.Default. The default is the named field of the existing provisioner.
func standingField(name string) func(steps.Env) (any, string) {
	return func(e steps.Env) (any, string) {
		stands, err := e.Own.Value("nfs-stands")
		if v := factField(stands, name); err == nil && v != "" {
			return v, "Deployment " + factField(stands, "namespace") + "/" + factField(stands, "name")
		}
		return nil, ""
	}
}

func standingOr(name, otherwise, from string) func(steps.Env) (any, string) {
	return func(e steps.Env) (any, string) {
		if v, where := standingField(name)(e); v != nil {
			return v, where
		}
		return otherwise, from
	}
}

var (
	mountOption = regexp.MustCompile(`^[A-Za-z0-9_.:=/+-]+$`)
	imageName   = regexp.MustCompile(`^[A-Za-z0-9_./:@-]+$`)
)

func checkOption(v string) error {
	if !mountOption.MatchString(v) {
		return fmt.Errorf("%q is not a mount option, such as nfsvers=4.1", v)
	}
	return nil
}

func validNFSImage(v string) error {
	if v != "" && !imageName.MatchString(v) {
		return fmt.Errorf("%q is not an image name", v)
	}
	return nil
}

var checkChartVersion = check.ValidVersion("4.0.18")

// adoptedClass returns the existing StorageClass for shared volumes and a description of it. It returns nil if the
// StorageClass does not exist.
func adoptedClass(ctx context.Context, e steps.Env) (*storagev1.StorageClass, string, error) {
	c, err := theClass(ctx, e)
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	return c, "StorageClass " + sharedClassName(e), err
}

func adoptOptions(ctx context.Context, e steps.Env) (any, string, error) {
	c, from, err := adoptedClass(ctx, e)
	if err != nil || c == nil {
		return nil, "", err
	}
	if len(c.MountOptions) == 0 {
		return steps.LeftEmpty, from + " without mount options", nil
	}
	return c.MountOptions, from, nil
}

func adoptReclaim(ctx context.Context, e steps.Env) (any, string, error) {
	c, from, err := adoptedClass(ctx, e)
	if err != nil || c == nil || c.ReclaimPolicy == nil {
		return nil, "", err
	}
	return string(*c.ReclaimPolicy), from, nil
}

func adoptArchive(ctx context.Context, e steps.Env) (any, string, error) {
	c, from, err := adoptedClass(ctx, e)
	if err != nil || c == nil {
		return nil, "", err
	}
	_, erases := onDelete(c)
	return !erases, from, nil
}

func adoptChartVersion(_ context.Context, e steps.Env) (any, string, error) {
	stands, err := e.Own.Value("nfs-stands")
	if err != nil {
		return steps.AdoptFact(nil, err, "")
	}
	v, is := strings.CutPrefix(factField(stands, "chart"), nfsChart+"-")
	if !is || checkChartVersion(v) != nil {
		return nil, "", nil
	}
	return v, "Deployment " + factField(stands, "namespace") + "/" + factField(stands, "name"), nil
}

// adoptNFSImage adopts an image that is not the chart's default. It does so only if the same Helm release installed the
// provisioner and its StorageClass.
func adoptNFSImage(_ context.Context, e steps.Env) (any, string, error) {
	stands, err := e.Own.Value("nfs-stands")
	if err != nil {
		return steps.AdoptFact(nil, err, "")
	}
	image := factField(stands, "image")
	if released, _ := stands.(map[string]any)["released"].(bool); !released {
		return nil, "", nil
	}
	if strings.HasPrefix(image, "registry.k8s.io/sig-storage/"+nfsChart+":") || validNFSImage(image) != nil {
		return nil, "", nil
	}
	return image, "Deployment " + factField(stands, "namespace") + "/" + factField(stands, "name"), nil
}

// nodeAddressesForNFS returns the nodes' own addresses. Without NAT, the nodes connect to the NFS server from these
// addresses.
func nodeAddressesForNFS(ctx context.Context, e steps.Env) (any, error) {
	nodes, err := check.List[corev1.Node](ctx, e.Cluster, check.Nodes, "", cluster.Selector{})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, n := range nodes {
		for _, a := range check.InternalAddresses(n) {
			out = append(out, clean.Text(a))
		}
	}
	if len(out) == 0 {
		return nil, steps.Absent("no node has an address")
	}
	return out, nil
}
