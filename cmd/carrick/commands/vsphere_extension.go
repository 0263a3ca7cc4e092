package commands

import (
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carrick/cluster/extension"
	"carrick/cmd/carrick/exit"
)

// vsphereExtension returns a hidden command. The guide vsphere runs it in a cluster, from carrick's own image. The
// flags have the usual names from webhooks and controllers (kubernetes/component-base: config/options;
// kubernetes-sigs/kubebuilder: cmd/main.go).
func (a *app) vsphereExtension() *cobra.Command {
	var o extension.Options
	var lease struct{ namespace, name string }
	var verbosity int
	cmd := &cobra.Command{
		Use: "vsphere-extension", Hidden: true,
		Short: "Run the webhook and profile controller of the guide vsphere (in a cluster)",
		Long: "Runs a mutating webhook that changes the StorageClass of new ReadWriteMany claims, and a controller that " +
			"allows pods to start in the namespaces of Kubeflow profiles. The guide vsphere deploys it.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exit.Usagef("vsphere-extension accepts no arguments")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := onlyOwnFlags(cmd); err != nil {
				return err
			}
			if o.Elects {
				o.Lease = lease.namespace + "/" + lease.name
			}
			o.Log = slog.New(slog.NewJSONHandler(a.err, &slog.HandlerOptions{Level: slog.LevelInfo - slog.Level(verbosity)}))
			if err := o.Validate(); err != nil {
				return exit.AsUsage(err)
			}
			return extension.Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Class, "class", "", "`StorageClass` for ReadWriteMany claims; without it the webhook changes no claim")
	f.StringSliceVar(&o.From, "from", nil, "`StorageClasses` to replace; claims without a StorageClass are changed, too")
	f.StringVar(&o.BindAddress, "bind-address", ":8443", "`address` of the webhook")
	f.StringVar(&o.HealthAddress, "health-probe-bind-address", ":8081", "`address` of /healthz, /readyz and /metrics")
	f.StringVar(&o.CertDir, "cert-dir", "", "`directory` of tls.crt and tls.key; renewed files are reloaded")
	f.DurationVar(&o.ShutdownDelay, "shutdown-delay-duration", 5*time.Second,
		"how long the webhook keeps answering after SIGTERM")
	f.StringVar(&o.PSPRole, "psp-role", "", "`ClusterRole` to which ServiceAccounts in profile namespaces are bound")
	f.StringVar(&o.Level, "level", "", "Pod Security `level` for profile namespaces that have no level")
	f.BoolVar(&o.Elects, "leader-elect", false,
		"elect a leader among replicas with a Lease; only the leader creates objects")
	f.StringVar(&lease.namespace, "leader-elect-resource-namespace", "", "`namespace` of that Lease")
	f.StringVar(&lease.name, "leader-elect-resource-name", "vsphere-extensions", "`name` of that Lease")
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig `file`; default: the pod's ServiceAccount")
	f.StringVar(&o.Context, "context", "", "`context` of the kubeconfig; default: its current one")
	f.IntVarP(&verbosity, "v", "v", 0, "log `level`; 1 adds unchanged claims and dry runs")
	return cmd
}

// onlyOwnFlags rejects the global flags, which have no effect on this command.
func onlyOwnFlags(cmd *cobra.Command) (err error) {
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && err == nil {
			err = exit.Usagef("%s has no flag --%s; see %s --help", cmd.Name(), f.Name, cmd.CommandPath())
		}
	})
	return err
}
