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
			Help: "A name or address that the guest's nodes reach, not only this machine.",
		},
		{
			Key: "nfs.path", Title: "Exported folder", Kind: steps.Path, NotFromPeer: true, Default: standingField("path"),
			Help: "As the server exports it; folders below it are mounted, too.",
		},
		{
			Key: "nfs.networks", Title: "Networks by which the NFS server sees the guest's nodes", Kind: steps.CIDR, Many: true,
			Opt: true,
			Help: "For the export line. With NSX the Supervisor's Egress CIDRs (vSphere Client > Hosts and Clusters > the " +
				"cluster > Configure > Namespaces > Network > Workload Network), else the nodes' network. Left empty, the nodes' " +
				"own addresses are named.",
		},
		{
			Key: "nfs.options", Title: "Mount options", Kind: steps.Text, Many: true, Opt: true, Adopt: adoptOptions,
			Check:   checkOption,
			Help:    "For the root of the export and for every volume of the class.",
			Default: steps.Fixed([]string{"nfsvers=4.1"}, "one port (2049), and no helper daemons on the nodes"),
		},
		{
			Key: "nfs.reclaim", Title: "What happens to a volume whose claim is deleted", Kind: steps.Pick, Adopt: adoptReclaim,
			Default: steps.Fixed("Delete", "the chart; with nfs.archive the folder is kept"),
			Help: "Delete: the provisioner takes it away, or renames its folder (nfs.archive). Retain: it stays, with its " +
				"PersistentVolume, until somebody deletes both.",
			Of: []steps.Choice{
				{Value: "Delete", Title: "Delete: the provisioner sees to it"}, {Value: "Retain", Title: "Retain: it stays"},
			},
		},
		{
			Key: "nfs.archive", Title: "Keep the folders of deleted claims", Kind: steps.YesNo, Adopt: adoptArchive,
			Default: steps.Fixed(true, "the chart"),
			Help:    "As archived-NAME on the server. No: who deletes a claim erases its data.",
		},
		{
			Key: "nfs.namespace", Title: "Namespace of the provisioner", Kind: steps.Namespace,
			Default: standingOr("namespace", "nfs-provisioner", "carrick"),
			Help:    "Nothing else should stand there: its level has to be baseline, because the pod runs as root.",
		},
		{
			Key: "nfs.release", Title: "Helm release of the provisioner", Kind: steps.Name,
			Default: standingOr("release", nfsChart, "the chart's name"),
			Help:    "The class names the provisioner after it: cluster.local/RELEASE",
		},
		{
			Key: "nfs.source", Title: "Where its chart comes from", Kind: steps.Text, NotFromPeer: true,
			Check: check.ValidSource,
			Help: "A chart repository (https://…, oci://…), or a folder of this machine that holds the folder " + nfsChart +
				".",
			Default: steps.Fixed("https://kubernetes-sigs.github.io/nfs-subdir-external-provisioner", "upstream's own"),
		},
		{
			Key: "nfs.version", Title: "Version of its chart", Kind: steps.Text, Check: checkChartVersion,
			Adopt: adoptChartVersion,
			Help: "Upstream's last one is 4.0.18: nobody has maintained it since February 2024. Who wants another installs " +
				"csi-driver-nfs and answers storage.source with class.",
			Default: steps.Fixed("4.0.18", "upstream's last one"),
		},
		{
			Key: "nfs.image", Title: "Image of the provisioner", Kind: steps.Text, NotFromPeer: true, Opt: true,
			Check: validNFSImage, Adopt: adoptNFSImage,
			Help: "A copy of it with its tag, where nodes pull from a registry of the site. Left empty, the chart's: " +
				"registry.k8s.io/sig-storage/nfs-subdir-external-provisioner:v4.0.2",
		},
	}
}

// standingField is what the provisioner that is there has.
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
		return fmt.Errorf("%q is no mount option, such as nfsvers=4.1", v)
	}
	return nil
}

func validNFSImage(v string) error {
	if v != "" && !imageName.MatchString(v) {
		return fmt.Errorf("%q is no name of an image", v)
	}
	return nil
}

var checkChartVersion = check.ValidVersion("4.0.18")

// adoptedClass is the class of a provisioner that stands; nil: there is none.
func adoptedClass(ctx context.Context, e steps.Env) (*storagev1.StorageClass, string, error) {
	c, err := theClass(ctx, e)
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	return c, "class " + sharedClassName(e), err
}

func adoptOptions(ctx context.Context, e steps.Env) (any, string, error) {
	c, from, err := adoptedClass(ctx, e)
	if err != nil || c == nil {
		return nil, "", err
	}
	if len(c.MountOptions) == 0 {
		return steps.LeftEmpty, from + " has none", nil
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

// adoptNFSImage is an image that is not the chart's own, of a provisioner that Helm installed with its class.
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

// nodeAddressesForNFS are the addresses by which the NFS server sees the nodes where nothing between translates them.
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
