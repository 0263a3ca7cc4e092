// Package extension is the extension that the vSphere guide runs in a cluster. It contains an admission webhook that
// sets a suitable StorageClass on ReadWriteMany claims, and a controller that creates required objects in profile
// namespaces. It has the same functions as SoeldnerConsult/vSphere-extensions (src/main/java/de/keeyzar: pvcmutator,
// profilewatcher). The package does not depend on guides, steps or the terminal UI.
//
// Read in this order: review.go (the decisions of the webhook), server.go (its server), watch.go (the controller),
// permissions.go (the permissions that it requires).
package extension

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Options are the options of the extension.
type Options struct {
	Rule                        // the claims to change; if Class is "", the webhook does not run
	BindAddress   string        // address of the webhook
	HealthAddress string        // address of /healthz, /readyz and /metrics, without TLS
	CertDir       string        // directory with tls.crt and tls.key
	ShutdownDelay time.Duration // how long the webhook accepts requests after the shutdown begins
	Profiles
	Elects     bool   // use leader election: only the holder of Lease creates objects
	Lease      string // NAMESPACE/NAME
	Kubeconfig string // path of a kubeconfig; if Kubeconfig and Context are "", the pod's ServiceAccount is used
	Context    string // context of the kubeconfig; "": the current context
	Log        *slog.Logger
}

// Profiles configures what the controller creates for the namespaces of profiles. With the zero value, it creates
// nothing.
type Profiles struct {
	PSPRole string // ClusterRole to which the namespaces' ServiceAccounts are bound
	Level   string // pod security level for namespaces that have none
}

func (p Profiles) wanted() bool { return p != Profiles{} }

// levels lists the pod security levels (kubernetes/kubernetes: staging/src/k8s.io/pod-security-admission/api).
var levels = []string{"privileged", "baseline", "restricted"}

// Validate returns an error if the options are invalid.
func (o Options) Validate() error {
	var faults []error
	bad := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if o.Class == "" && !o.Profiles.wanted() {
		bad("nothing to do: set a StorageClass for claims, or a role or a level for profiles")
	}
	for _, c := range append([]string{o.Class}, o.From...) {
		if c != "" && len(validation.IsDNS1123Subdomain(c)) > 0 {
			bad("%q is not a StorageClass name", c)
		}
	}
	for _, c := range o.From {
		if c == "" {
			bad("an empty StorageClass cannot be replaced, because such a claim requests an existing volume")
		}
	}
	if o.Class != "" && o.CertDir == "" {
		bad("the webhook requires a directory with tls.crt and tls.key")
	}
	if o.PSPRole != "" && len(content.IsPathSegmentName(o.PSPRole)) > 0 {
		bad("%q is not a role name", o.PSPRole)
	}
	if o.Level != "" && !isLevel(o.Level) {
		bad("%q is not one of %s", o.Level, strings.Join(levels, ", "))
	}
	if o.Profiles.wanted() && o.Elects {
		if ns, name := o.lease(); len(validation.IsDNS1123Label(ns)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
			bad("%q is not a lease in the form NAMESPACE/NAME", o.Lease)
		}
	}
	return errors.Join(faults...)
}

func isLevel(s string) bool {
	for _, l := range levels {
		if l == s {
			return true
		}
	}
	return false
}

func (o Options) lease() (namespace, name string) {
	namespace, name, _ = strings.Cut(o.Lease, "/")
	return namespace, name
}

// Run runs the extension until ctx ends, and then shuts it down gracefully. It reports that it is not ready, answers
// requests for ShutdownDelay, and exits when all requests in flight are answered. If the webhook or the controller
// fails, Run returns the error.
func Run(ctx context.Context, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	registry := prometheus.NewRegistry()
	m := newMetrics(registry)
	group, ctx := errgroup.WithContext(ctx)
	if o.Profiles.wanted() {
		f, err := newFollower(o, m)
		if err != nil {
			return err
		}
		group.Go(func() error { return f.run(ctx) })
	}
	s := newServer(o, m, registry)
	group.Go(func() error { return s.run(ctx) })
	return group.Wait()
}
