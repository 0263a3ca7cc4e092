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
			Name: "session-host-name", Title: "The session host is a valid Ingress host of its own",
			On: steps.Remote,
			Why: "An Ingress rejects host:443 and names with _, which Renku's API accepts, and under Renku's own domain " +
				"sessions could read its cookies.",
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
			Why: "A name that points elsewhere shows another server's page or none.",
			Run: sessionHostIsIngress,
		},
		{
			Name: "session-tls", Title: "Browsers trust the session host's certificate", On: steps.Remote,
			From: "this machine", Needs: []string{"session-host-resolves", "session-protocol"},
			Why: "Without a TLS Secret, sessions use the ingress controller's default certificate, and no browser " +
				"trusts the one that ingress-nginx generates.",
			References: []string{page, "SwissDataScienceCenter/amalthea issue 1058"},
			Run:        sessionTLS,
		},
		{
			Name: "session-path", Title: "The session path is empty or like /sessions", On: steps.Remote,
			Why: "Renku puts it before each session's name unchecked, so one slash too many or too few breaks the " +
				"address (not in the published guide).",
			References: []string{addressSource},
			Run:        sessionPath,
		},
		{
			Name: "session-protocol", Title: "Sessions are served over HTTPS", On: steps.Remote,
			Why: "Many identity providers reject logins that return to http, and browsers block http pages inside a " +
				"portal on https.",
			References: []string{addressSource},
			Run: func(_ context.Context, e steps.Env) steps.Result {
				if e.Answers.Text("sessions.protocol") != "https" {
					return steps.Warned(
						"sessions are served over http, so passwords and data are sent unencrypted",
						"answer sessions.protocol with https",
					)
				}
				return steps.Passed("https")
			},
		},
		{
			Name: "session-port", Title: "Sessions use the protocol's default port", On: steps.Remote,
			Why:        "Any other port must be in the redirect URI that Keycloak allows, and firewalls open it less often.",
			References: []string{addressSource},
			Run:        sessionPortUsual,
		},
	}
}

var dnsName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// checkSessionHost applies the rules of Kubernetes for the host of an Ingress (RFC 1123).
func checkSessionHost(v string) error {
	_, err := netip.ParseAddr(v)
	switch {
	case strings.Contains(v, "://"):
		return fmt.Errorf("%q is a URL: enter only the host name, without https://", v)
	case err == nil:
		return fmt.Errorf("%q is an IP address: an Ingress requires a host name", v)
	case strings.ContainsAny(v, "/:"):
		return fmt.Errorf("%q is more than a host name: the port and the path are separate questions", v)
	case strings.Contains(v, "_"):
		return fmt.Errorf("%q contains _: Renku accepts that, an Ingress does not", v)
	case !dnsName.MatchString(v) || len(v) > 253:
		return fmt.Errorf(
			"%q is not a valid Ingress host: use lower-case letters, digits, - and ., at most 253 characters", v,
		)
	}
	return nil
}

// checkSessionPath rejects paths that Renku's API accepts but that give broken session
// addresses.
func checkSessionPath(v string) error {
	switch {
	case !strings.HasPrefix(v, "/"):
		return fmt.Errorf("%q does not begin with /: it would be joined to the host name", v)
	case strings.HasSuffix(v, "/"):
		return fmt.Errorf("%q ends with /: session addresses would contain //", v)
	case strings.ContainsAny(v, " ?#\\") || strings.Contains(v, "//") || strings.Contains(v, "/.."):
		return fmt.Errorf("%q is not a path such as /sessions", v)
	}
	return nil
}

// registered returns a string field of the cluster as Renku stores it, or "" if it is not set.
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

// renkuHosts returns the host names of the Renku portal itself.
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
			"the session host is not set", "answer sessions.host with the name that points to the remote cluster's ingress",
		)
	}
	if err := checkSessionHost(host); err != nil {
		return steps.Failed(err.Error(), "answer sessions.host")
	}
	if stored := registered(e, "session_host"); stored != "" {
		if err := checkSessionHost(stored); err != nil {
			return steps.Failed("registered host: "+err.Error(), e.ApplyStep("register"))
		}
	}
	if slices.Contains(renkuHosts(e), host) {
		return steps.Failed(
			host+" is Renku's own domain, which points to the local cluster",
			"answer sessions.host with a name that points to the remote cluster's ingress",
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
			fmt.Sprintf("answer sessions.port with %d if the ingress also listens there", usual),
		)
	}
	return steps.Passed("%d", port)
}
