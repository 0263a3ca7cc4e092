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

const addressSource = "SwissDataScienceCenter/renku-data-services: components/renku_data_services " +
	"(notebooks/core_sessions.py, crc/api.spec.yaml)"

func addressChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "session-host-name", Title: "The session host is a valid Ingress host, not Renku's own",
			On: steps.Remote,
			Why: "Renku accepts hosts such as host:443 or my_host, but an Ingress rejects them. Sessions on Renku's own host " +
				"could read Renku's cookies.",
			References: []string{addressSource},
			Run:        sessionHostName,
		},
		{
			Name: "session-host-resolves", Title: "The session host resolves", On: steps.Remote, From: "this machine",
			Needs: []string{"session-host-name"},
			Why:   "Browsers open sessions at this host.",
			Run:   sessionHostResolves,
		},
		{
			Name: "session-host-is-ingress", Title: "The session host points to the remote cluster's ingress", On: steps.Remote,
			From: "this machine and the cluster", Needs: []string{"session-host-resolves"},
			Why: "If the host points elsewhere, browsers do not reach the sessions.",
			Run: sessionHostIsIngress,
		},
		{
			Name: "session-tls", Title: "Browsers trust the session host's certificate", On: steps.Remote,
			From: "this machine", Needs: []string{"session-host-resolves", "session-protocol"},
			Why: "Without a TLS Secret, sessions use the ingress controller's default certificate. Browsers do not " +
				"trust the one that ingress-nginx generates.",
			References: []string{page, "SwissDataScienceCenter/amalthea issue 1058"},
			Run:        sessionTLS,
		},
		{
			Name: "session-path", Title: "The session path is empty or has the form /sessions", On: steps.Remote,
			Why: "Renku puts the path before each session's name without checking it. A missing or extra slash breaks " +
				"the address (not in the published guide).",
			References: []string{addressSource},
			Run:        sessionPath,
		},
		{
			Name: "session-protocol", Title: "Sessions are served over HTTPS", On: steps.Remote,
			Why:        "Many identity providers reject http redirect URIs, and browsers block http frames in an https portal.",
			References: []string{addressSource},
			Run: func(_ context.Context, e steps.Env) steps.Result {
				if e.Answers.Text("sessions.protocol") != "https" {
					return steps.Warned(
						"sessions are served over http, so passwords and data are sent unencrypted",
						"set sessions.protocol to https",
					)
				}
				return steps.Passed("https")
			},
		},
		{
			Name: "session-port", Title: "Sessions use the protocol's default port", On: steps.Remote,
			Why:        "Any other port must be in the redirect URI in Keycloak, and firewalls are more likely to block it.",
			References: []string{addressSource},
			Run:        sessionPortUsual,
		},
	}
}

var dnsName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// checkSessionHost applies Kubernetes' rules for the host of an Ingress (RFC 1123).
func checkSessionHost(v string) error {
	_, err := netip.ParseAddr(v)
	switch {
	case strings.Contains(v, "://"):
		return fmt.Errorf("%q is a URL: enter only the host name, without https://", v)
	case err == nil:
		return fmt.Errorf("%q is an IP address: an Ingress requires a host name", v)
	case strings.ContainsAny(v, "/:"):
		return fmt.Errorf("%q is more than a host name: enter the port and the path in their own questions", v)
	case strings.Contains(v, "_"):
		return fmt.Errorf("%q contains _, which Renku accepts but an Ingress rejects", v)
	case !dnsName.MatchString(v) || len(v) > 253:
		return fmt.Errorf(
			"%q is not a valid Ingress host: use lower-case letters, digits, - and ., at most 253 characters", v,
		)
	}
	return nil
}

// checkSessionPath rejects paths that Renku's API accepts but that break session addresses.
func checkSessionPath(v string) error {
	switch {
	case !strings.HasPrefix(v, "/"):
		return fmt.Errorf("%q does not begin with /, so Renku would append it directly to the host name", v)
	case strings.HasSuffix(v, "/"):
		return fmt.Errorf("%q ends with /: session addresses would contain //", v)
	case strings.ContainsAny(v, " ?#\\") || strings.Contains(v, "//") || strings.Contains(v, "/.."):
		return fmt.Errorf("%q is not a path such as /sessions", v)
	}
	return nil
}

// registered returns a string field of the cluster's record in Renku. It returns "" if the field is
// not set or the record cannot be read.
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
		return steps.Failed("registered path: "+checkSessionPath(stored).Error(), e.ApplyStep("register"))
	}
	if path == "" {
		return steps.Passed("no path: sessions are at the root of the host")
	}
	return steps.Passed("%s", path)
}

func sessionHost(e steps.Env) string { return e.Answers.Text("sessions.host") }

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
			"the session host is not set", "set sessions.host to the name that points to the remote cluster's ingress",
		)
	}
	if err := checkSessionHost(host); err != nil {
		return steps.Failed(err.Error(), "set sessions.host to a valid host name")
	}
	if stored := registered(e, "session_host"); stored != "" {
		if err := checkSessionHost(stored); err != nil {
			return steps.Failed("registered host: "+err.Error(), e.ApplyStep("register"))
		}
	}
	if slices.Contains(renkuHosts(e), host) {
		return steps.Failed(
			host+" is Renku's own domain, which points to the local cluster",
			"set sessions.host to a name that points to the remote cluster's ingress",
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
			fmt.Sprintf("port %d must be in each session's address and in the redirect URI that Keycloak allows", port),
			fmt.Sprintf("set sessions.port to %d if the ingress also listens on that port", usual),
		)
	}
	return steps.Passed("%d", port)
}
