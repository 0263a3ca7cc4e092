package main

import (
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"carrick/cluster/extension"
)

// vsphereExtension is the program that the guide for vSphere runs in a cluster. Its
// image is carrick's own, so it is a command; nobody types it, so it is hidden.
func (a *app) vsphereExtension() *cobra.Command {
	var o extension.Options
	cmd := &cobra.Command{
		Use: "vsphere-extension", Hidden: true, Short: "Answer an API server about claims, and follow profiles: runs in a cluster",
		Long: "Gives new claims that many pods write to another class, as a mutating webhook, and makes what lets pods start in namespaces of Kubeflow's profiles. " +
			"The guide vsphere runs it.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("vsphere-extension takes no argument")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Kubeconfig = a.local.kubeconfig
			o.Log = slog.New(slog.NewJSONHandler(a.err, nil))
			if err := o.Validate(); err != nil {
				return usageError{err}
			}
			return extension.Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Class, "class", "", "storage `class` that such claims get; without it no claim is looked at")
	f.StringSliceVar(&o.From, "from", nil, "storage `classes` that are exchanged; a claim without a class gets one, too")
	f.StringVar(&o.Listen, "listen", ":8443", "`address` of the webhook")
	f.StringVar(&o.Health, "health", ":8081", "`address` of /healthz, /readyz and /metrics")
	f.StringVar(&o.Certificates, "certificate", "", "`folder` of tls.crt and tls.key; a renewed pair is shown without a restart")
	f.DurationVar(&o.Drain, "drain", 5*time.Second, "how long it answers on after it was told to end")
	f.StringVar(&o.PSPRole, "psp-role", "", "`ClusterRole` that ServiceAccounts in namespaces of profiles are bound to")
	f.StringVar(&o.Level, "level", "", "`level` of pod security for namespaces of profiles that have none")
	f.StringVar(&o.Lease, "lease", "", "`NAMESPACE/NAME` of the lease: of several programs one makes something")
	return cmd
}
