package check

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"net/url"
	"time"

	"carrick/cluster/kubeconfig"
	"carrick/cluster/probe"
	"carrick/cluster/tracked"
)

// OnLoopback tells whether a URL's host is the machine that asks.
func OnLoopback(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || (err == nil && ip.IsLoopback())
}

// ServerOf is the host and port of a kubeconfig's server, and the name that its
// certificate must be good for.
func ServerOf(k kubeconfig.Config) (where, name string) {
	u, err := url.Parse(k.Server)
	if err != nil {
		return k.Server, k.TLSServerName // which no handshake can be had with
	}
	return HostPort(u), cmp.Or(k.TLSServerName, u.Hostname())
}

// HostPort is where an https URL leads.
func HostPort(u *url.URL) string { return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")) }

// Resolve returns the addresses of a host by this machine's DNS, kept for a minute.
func Resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	return tracked.Look(ctx, "resolve/"+host, time.Minute, func(ctx context.Context) ([]netip.Addr, error) {
		return probe.Resolve(ctx, host)
	})
}

// ServerShows is what the server of a kubeconfig shows to this machine, judged by
// the CA in the kubeconfig alone; without one, by the system's. It is a look
// that is kept for a minute. The error is not nil when no handshake could be had.
func ServerShows(ctx context.Context, k kubeconfig.Config) (probe.TLSReport, error) {
	where, name := ServerOf(k)
	report, err := tracked.Look(
		ctx, "tls/"+where+"/"+name, time.Minute, func(ctx context.Context) (probe.TLSReport, error) {
			return probe.TLS(ctx, where, name, nil)
		},
	)
	if err != nil {
		return report, err
	}
	return report.Judge(name, k.CA)
}
