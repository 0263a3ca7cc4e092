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

// OnLoopback reports whether a URL's host is a loopback address.
func OnLoopback(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || (err == nil && ip.IsLoopback())
}

// ServerOf returns the host and port of a kubeconfig's server. name is the name for which its certificate must be
// valid.
func ServerOf(k kubeconfig.Config) (where, name string) {
	u, err := url.Parse(k.Server)
	if err != nil {
		return k.Server, k.TLSServerName // no handshake is possible with this address
	}
	return HostPort(u), cmp.Or(k.TLSServerName, u.Hostname())
}

// HostPort returns the host and port of an https URL. The default port is 443.
func HostPort(u *url.URL) string { return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")) }

// Resolve resolves a host with this machine's DNS. The result is cached for a minute.
func Resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	return tracked.Look(ctx, "resolve/"+host, time.Minute, func(ctx context.Context) ([]netip.Addr, error) {
		return probe.Resolve(ctx, host)
	})
}

// serverShows performs a TLS handshake with the server of a kubeconfig. It verifies the certificate only against the CA
// in the kubeconfig, or against the system's CAs if the kubeconfig has none. If the handshake failed, it returns an
// error. The result is cached for a minute.
func serverShows(ctx context.Context, k kubeconfig.Config) (probe.TLSReport, error) {
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
