package renku

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"carrick/steps"
)

// addressSource is the upstream code that builds the sessions' addresses.
const addressSource = "SwissDataScienceCenter/renku-data-services: components/renku_data_services " +
	"(notebooks/core_sessions.py, crc/api.spec.yaml)"

func addressChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "session-host-name", Title: "the sessions' host is a name of their own that an Ingress takes",
			On: steps.Remote,
			Why: "Renku's API takes host:443 and names with _, an Ingress takes neither; under Renku's own domain " +
				"sessions could read its cookies",
			References: []string{addressSource},
			Run:        sessionHostName,
		},
		{
			Name: "session-host-resolves", Title: "the sessions' host resolves", On: steps.Remote, From: "this machine",
			Needs: []string{"session-host-name"},
			Why:   "browsers open sessions there",
			Run:   sessionHostResolves,
		},
		{
			Name: "session-host-is-ingress", Title: "the sessions' host leads to the remote cluster's ingress", On: steps.Remote,
			From: "this machine and the cluster", Needs: []string{"session-host-resolves"},
			Why: "a name that leads elsewhere shows somebody else's page, or none",
			Run: sessionHostIsIngress,
		},
		{
			Name: "session-tls", Title: "browsers trust the certificate of the sessions' host", On: steps.Remote,
			From: "this machine", Needs: []string{"session-host-resolves", "session-protocol"},
			Why: "without a TLS Secret each session shows the ingress controller's default certificate, the one looked " +
				"at here. Nobody trusts the one that ingress-nginx makes up",
			References: []string{page, "SwissDataScienceCenter/amalthea issue 1058"},
			Run:        sessionTLS,
		},
		{
			Name: "session-path", Title: "the sessions' path is empty or /like/this", On: steps.Remote,
			Why: "Renku does not check it, and puts it before each session's name: a slash too many or too few breaks " +
				"the address. The published guide does not say so",
			References: []string{addressSource},
			Run:        sessionPath,
		},
		{
			Name: "session-protocol", Title: "sessions are served by https", On: steps.Remote,
			Why: "many identity providers refuse a login that returns to http, and browsers show no http page inside a " +
				"portal on https",
			References: []string{addressSource},
			Run: func(_ context.Context, e steps.Env) steps.Result {
				if e.Answers.Text("sessions.protocol") != "https" {
					return steps.Warned(
						"sessions are served by http: passwords and data go in the open", "answer sessions.protocol with https",
					)
				}
				return steps.Passed("https")
			},
		},
		{
			Name: "session-port", Title: "sessions use the protocol's own port", On: steps.Remote,
			Why:        "any other port stands in the address that Keycloak must let in, and firewalls open it less often",
			References: []string{addressSource},
			Run:        sessionPortUsual,
		},
	}
}

var dnsName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// checkSessionHost applies the rules that an Ingress has for a host (RFC 1123).
func checkSessionHost(v string) error {
	_, err := netip.ParseAddr(v)
	switch {
	case strings.Contains(v, "://"):
		return fmt.Errorf("%q is an address: write the host name alone, without https://", v)
	case err == nil:
		return fmt.Errorf("%q is an IP address: an Ingress serves names", v)
	case strings.ContainsAny(v, "/:"):
		return fmt.Errorf("%q is more than a host name: the port and the path are questions of their own", v)
	case strings.Contains(v, "_"):
		return fmt.Errorf("%q has a _ in it: Renku takes that, an Ingress does not", v)
	case !dnsName.MatchString(v) || len(v) > 253:
		return fmt.Errorf("%q is no host name that an Ingress takes: lower-case letters, digits, - and ., at most 253", v)
	}
	return nil
}

// checkSessionPath enforces a rule that Renku's API does not check.
func checkSessionPath(v string) error {
	switch {
	case !strings.HasPrefix(v, "/"):
		return fmt.Errorf("%q does not begin with /: it would be glued to the host", v)
	case strings.HasSuffix(v, "/"):
		return fmt.Errorf("%q ends with /: each session's address would have two", v)
	case strings.ContainsAny(v, " ?#\\") || strings.Contains(v, "//") || strings.Contains(v, "/.."):
		return fmt.Errorf("%q is no path such as /sessions", v)
	}
	return nil
}

// registered returns a text field of the cluster as Renku stores it, or "" if it is not set.
func registered(e steps.Env, field string) string {
	row, err := localFacts(e).Map("cluster-row")
	if err != nil {
		return ""
	}
	return textOf(row, field)
}

func sessionPath(_ context.Context, e steps.Env) steps.Result {
	path, stored := e.Answers.Text("sessions.path"), registered(e, "session_path")
	if stored != "" && checkSessionPath(stored) != nil {
		return steps.Failed("as registered, "+checkSessionPath(stored).Error(), e.ApplyStep("register"))
	}
	if path == "" {
		return steps.Passed("none: sessions stand at the root of their host")
	}
	return steps.Passed("%s", path)
}

func sessionHost(e steps.Env) string { return e.Answers.Text("sessions.host") }

// renkuHosts are the host names of the Renku portal itself.
func renkuHosts(e steps.Env) []string {
	_, host, _ := strings.Cut(renkuOrigin(e), "://")
	if at, err := netip.ParseAddrPort(host); err == nil {
		host = at.Addr().String()
	} else if name, _, cut := strings.Cut(host, ":"); cut {
		host = name
	}
	return slices.DeleteFunc([]string{host, e.Answers.Text("renku.domain")}, func(s string) bool { return s == "" })
}

func sessionHostName(_ context.Context, e steps.Env) steps.Result {
	host := sessionHost(e)
	if host == "" {
		return steps.Failed(
			"the sessions' host is not known", "answer sessions.host with the name that leads to the remote cluster's ingress",
		)
	}
	if err := checkSessionHost(host); err != nil {
		return steps.Failed(err.Error(), "answer sessions.host")
	}
	if stored := registered(e, "session_host"); stored != "" {
		if err := checkSessionHost(stored); err != nil {
			return steps.Failed("as registered, "+err.Error(), e.ApplyStep("register"))
		}
	}
	if slices.Contains(renkuHosts(e), host) {
		return steps.Failed(
			host+" is Renku's own domain: it leads to the local cluster",
			"answer sessions.host with a name that leads to the remote cluster's ingress",
		)
	}
	return steps.Passed("%s", host)
}

func sessionPortUsual(_ context.Context, e steps.Env) steps.Result {
	port, usual := e.Answers.Int("sessions.port"), 443
	if e.Answers.Text("sessions.protocol") == "http" {
		usual = 80
	}
	if port != usual {
		return steps.Warned(
			fmt.Sprintf("port %d stands in each session's address, and in the one that Keycloak must let in", port),
			fmt.Sprintf("answer sessions.port with %d, if the ingress is there, too", usual),
		)
	}
	return steps.Passed("%d", port)
}
