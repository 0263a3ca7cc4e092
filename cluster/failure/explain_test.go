package failure_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster/failure"
)

func apiError(code int32, reason metav1.StatusReason, message string, causes ...metav1.StatusCause) error {
	return fmt.Errorf("apply: %w", &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: code, Reason: reason, Message: message,
		Details: &metav1.StatusDetails{Group: "apps", Kind: "deployments", Name: "web", Causes: causes},
	}})
}

func dialError(inner error) error {
	return &url.Error{Op: "Get", URL: "https://x", Err: &net.OpError{
		Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 6443},
		Err: os.NewSyscallError("connect", inner),
	}}
}

func TestExplainSaysWhatHappenedInOneSentence(t *testing.T) {
	certificate := &x509.Certificate{
		DNSNames: []string{"kubernetes"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1)},
		Issuer:    pkix.Name{CommonName: "other-ca"},
		NotBefore: time.Date(2030, 1, 2, 3, 4, 0, 0, time.UTC), NotAfter: time.Date(2020, 1, 2, 3, 4, 0, 0, time.UTC),
	}
	since := time.Date(2026, 1, 1, 12, 30, 15, 0, time.Local)
	tests := map[string]struct {
		err  error
		want string // a part, or several with " … " between
	}{
		"refused":  {dialError(syscall.ECONNREFUSED), "192.0.2.1:6443 was refused"},
		"no route": {dialError(syscall.EHOSTUNREACH), "no route to 192.0.2.1:6443"},
		"reset":    {&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}, "was reset"},
		"still there": {
			fmt.Errorf("delete it: %w", &failure.StillThereError{What: "namespaces demo", Why: "it is held by x"}),
			"delete it: namespaces demo: it is held by x",
		},
		"timeout":     {&url.Error{Op: "Get", URL: "https://x", Err: context.DeadlineExceeded}, "did not answer in time"},
		"i/o timeout": {dialError(os.ErrDeadlineExceeded), "192.0.2.1:6443 did not answer in time"},
		"eof":         {&url.Error{Op: "Get", URL: "https://x", Err: io.EOF}, "closed the connection"},
		"http/2 closed": {
			&url.Error{
				Op: "Get", URL: "https://x", Err: errors.New("http2: client connection force closed via ClientConn.Close"),
			},
			"closed the connection",
		},
		"no such name": {dialError(&net.DNSError{Name: "api.nowhere", IsNotFound: true}), "api.nowhere does not resolve"},
		"dns timeout":  {&net.DNSError{Name: "api.nowhere", IsTimeout: true}, "DNS server does not answer"},
		"proxy": {
			&net.OpError{Op: "proxyconnect", Err: dialError(syscall.ECONNREFUSED)},
			"192.0.2.1:6443 was refused … this is the proxy",
		},
		"authority": {
			&tls.CertificateVerificationError{
				UnverifiedCertificates: []*x509.Certificate{certificate}, Err: x509.UnknownAuthorityError{Cert: certificate},
			},
			"does not trust (issuer: other-ca)",
		},
		"name": {
			x509.HostnameError{Certificate: certificate, Host: "rome.test"},
			"not valid for rome.test, only for kubernetes, 10.0.0.1",
		},
		"expired": {
			x509.CertificateInvalidError{Cert: certificate, Reason: x509.Expired, Detail: "current time 2026 is after 2020"},
			"expired on 2 January 2020",
		},
		"not yet": {
			x509.CertificateInvalidError{Cert: certificate, Reason: x509.Expired, Detail: "current time 2026 is before 2030"},
			"not valid before 2 January 2030",
		},
		"not tls": {
			fmt.Errorf("get: %w", errors.New("http: server gave HTTP response to HTTPS client")), "does not speak TLS",
		},
		"client cert": {errors.New("remote error: tls: expired certificate"), "client certificate: it has expired"},
		"401": {
			apiError(401, metav1.StatusReasonUnauthorized, "Unauthorized"), "rejects the credentials",
		},
		"403": {
			apiError(
				403, metav1.StatusReasonForbidden,
				`secrets "x" is forbidden: User "system:serviceaccount:a:b" cannot get resource "secrets" in API group "" in the namespace "c"`,
			),
			`system:serviceaccount:a:b cannot get secrets "x" in c`,
		},
		"403 cluster": {
			apiError(
				403, metav1.StatusReasonForbidden,
				`pods is forbidden: User "jane" cannot create resource "pods/exec" in API group "" at the cluster scope`,
			),
			`jane cannot create pods/exec`,
		},
		"403 path": {
			apiError(403, metav1.StatusReasonForbidden, `forbidden: User "jane" cannot get path "/metrics"`),
			`jane cannot get /metrics`,
		},
		"403 admission": {
			apiError(403, metav1.StatusReasonForbidden, `exceeded quota: small`), `rejects the request: exceeded quota`,
		},
		"404": {apiError(404, metav1.StatusReasonNotFound, `x`), `deployments.apps "web" does not exist`},
		"409 conflict": {
			apiError(
				409, metav1.StatusReasonConflict, `Apply failed`,
				metav1.StatusCause{
					Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "helm" using v1`, Field: ".spec.replicas",
				},
			),
			`.spec.replicas is managed by "helm"`,
		},
		"409 exists": {apiError(409, metav1.StatusReasonAlreadyExists, `x`), `"web" already exists`},
		"409 changed": {
			apiError(409, metav1.StatusReasonConflict, `the object has been modified`), `changed the object at the same time`,
		},
		"410": {apiError(410, metav1.StatusReasonExpired, `x`), `read the object again`},
		"413": {apiError(413, metav1.StatusReasonRequestEntityTooLarge, `x`), `too large`},
		"422": {
			apiError(
				422, metav1.StatusReasonInvalid, `x`, metav1.StatusCause{Field: "spec.ports[0].port", Message: "Invalid value: 0"},
			),
			`deployments.apps "web": spec.ports[0].port: Invalid value: 0`,
		},
		"429": {apiError(429, metav1.StatusReasonTooManyRequests, `x`), `overloaded`},
		"500": {
			apiError(500, metav1.StatusReasonInternalError, "etcd \x1b[31mis away"), `has an internal error (500): etcd is away`,
		},
		"503": {apiError(503, metav1.StatusReasonServiceUnavailable, `x`), `not available`},
		"not served": {
			fmt.Errorf("read widgets.shop: %w", failure.ErrNotServed), `does not serve this kind … (widgets.shop)`,
		},
		"stale": {
			&failure.StaleError{Since: since, Cause: dialError(syscall.ECONNREFUSED)}, `since 12:30:15 … was refused`,
		},
		"closed": {failure.ErrClosed, `was closed`},
		"plugin missing": {
			errors.New(`Get "https://x": getting credentials: exec: executable aws not found`),
			`not installed or not in PATH: exec: executable aws not found`,
		},
		"plugin failed": {
			errors.New(`Get "https://x": getting credentials: exec: executable aws failed with exit code 255`),
			`failed: exec: executable aws failed with exit code 255`,
		},
		"plugin asks": {
			errors.New(`getting credentials: exec plugin cannot support interactive mode: standard input is unavailable`),
			`log in with the plugin first`,
		},
		"something else": {errors.New("a\n\tb\u202ec"), `a bc`},
		"stopped":        {context.Canceled, "was canceled"},
		"a long story":   {errors.New(strings.Repeat("long ", 200)), "…"},
		"nothing at all": {nil, ""},
		"generic gateway": {
			apierrors.NewGenericServerResponse(502, "get", schema.GroupResource{Resource: "pods"}, "", "<html>", 0, true),
			"not available at the moment (502)",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := failure.Explain(test.err)
			t.Log(got)
			for part := range strings.SplitSeq(test.want, " … ") {
				if !strings.Contains(got, part) {
					t.Errorf("got %q, want %q", got, part)
				}
			}
			if strings.ContainsAny(got, "\n\x1b") || len([]rune(got)) > 400 || strings.HasSuffix(got, ".") {
				t.Errorf("%q is no sentence", got)
			}
		})
	}
}

// If the cluster has never answered, the sentence does not say since when.
func TestExplainDoesNotDateALossThatWasThereFromTheStart(t *testing.T) {
	refused := dialError(syscall.ECONNREFUSED)
	never := &failure.StaleError{Since: time.Now(), Cause: refused, Never: true}
	if got := failure.Explain(never); got != failure.Explain(refused) {
		t.Errorf("got %q", got)
	}
}
