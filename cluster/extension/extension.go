// Package extension is the extension that the vSphere guide runs in a cluster: an admission webhook that sets a
// suitable StorageClass on ReadWriteMany claims, and a controller that creates the objects that pods in profile
// namespaces need to start. It does the same as SoeldnerConsult/vSphere-extensions (src/main/java/de/keeyzar:
// pvcmutator, profilewatcher), and does not depend on guides, steps or the terminal UI.
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
	Rule                        // the claims to change; without a Class the webhook does not run
	BindAddress   string        // of the webhook
	HealthAddress string        // of /healthz, /readyz and /metrics, without TLS
	CertDir       string        // folder of tls.crt and tls.key
	ShutdownDelay time.Duration // how long requests are accepted after shutdown was requested
	Profiles
	Elects     bool   // leader election: only the holder of Lease creates what profiles need
	Lease      string // NAMESPACE/NAME
	Kubeconfig string // file; "" without a Context: the pod's ServiceAccount
	Context    string // of the kubeconfig; "": its current one
	Log        *slog.Logger
}

// Profiles says what to create for the namespaces of profiles. With the zero value, that is nothing.
type Profiles struct {
	PSPRole string // ClusterRole that the namespaces' ServiceAccounts are bound to
	Level   string // pod security level for namespaces that have none
}

func (p Profiles) wanted() bool { return p != Profiles{} }

// levels are the pod security levels (kubernetes/kubernetes: staging/src/k8s.io/pod-security-admission/api).
var levels = []string{"privileged", "baseline", "restricted"}

// Validate returns an error if the options are invalid.
func (o Options) Validate() error {
	var faults []error
	bad := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if o.Class == "" && !o.Profiles.wanted() {
		bad("nothing to do: set a class for claims, or a role or a level for profiles")
	}
	for _, c := range append([]string{o.Class}, o.From...) {
		if c != "" && len(validation.IsDNS1123Subdomain(c)) > 0 {
			bad("%q is not a storage class name", c)
		}
	}
	for _, c := range o.From {
		if c == "" {
			bad("a claim with an empty class asks for an existing volume: an empty class cannot be replaced")
		}
	}
	if o.Class != "" && o.CertDir == "" {
		bad("the webhook requires a folder with tls.crt and tls.key")
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

// lease splits the name of the lease.
func (o Options) lease() (namespace, name string) {
	namespace, name, _ = strings.Cut(o.Lease, "/")
	return namespace, name
}

// Run runs the extension until ctx ends, and then stops it gracefully: it reports that it is not ready, continues to
// answer for ShutdownDelay, and exits when all requests in flight are answered. It returns the error of a required
// component.
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
