package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster/failure"
)

// answer is the class of an error from an API request.
type answer int

const (
	unreachable  answer = iota // no response: the network or TLS failed, or credentials are unavailable
	failing                    // an error response, such as an overloaded or crashed server, or a proxy's error page
	refused                    // forbidden
	unauthorized               // not authenticated
	absent                     // the object does not exist
	unserved                   // the API server does not serve the kind
	unwatchable                // the kind cannot be watched
	rejected                   // the request is invalid
	expired                    // the requested resource version is no longer available, so the read starts again
)

func answerOf(err error) answer {
	if errors.Is(err, failure.ErrNotJSON) {
		return failing
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return unreachable
	}
	s := status.Status()
	switch s.Code {
	case http.StatusForbidden:
		return refused
	case http.StatusUnauthorized:
		return unauthorized
	case http.StatusNotFound:
		if s.Details != nil && s.Details.Name != "" && len(s.Details.Causes) == 0 {
			return absent
		}
		return unserved
	case http.StatusMethodNotAllowed:
		return unwatchable
	case http.StatusGone:
		return expired
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusNotAcceptable:
		return rejected
	}
	if s.Reason == metav1.StatusReasonExpired || s.Reason == metav1.StatusReasonGone {
		return expired
	}
	return failing
}

// isPermanent reports whether an immediate retry would fail with the same error.
func isPermanent(err error) bool {
	var (
		dns       *net.DNSError
		verify    *tls.CertificateVerificationError
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		record    tls.RecordHeaderError
	)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return true
	case errors.As(err, &dns), errors.As(err, &verify), errors.As(err, &authority), errors.As(err, &name), errors.As(err, &record):
		return true
	}
	text := err.Error()
	return strings.Contains(text, "getting credentials: ") ||
		strings.Contains(text, "server gave HTTP response to HTTPS client") ||
		strings.Contains(text, "remote error: tls: ") && strings.Contains(text, "certificate") // client certificate
}

// backoff returns the pause after the given number of consecutive failures. Until an outage is reported, the pause is
// at most StaleAfter/6, so that several retries happen before the report.
func (r *read) backoff(fails int, err error) time.Duration {
	most := r.c.options.BackoffMax
	r.mu.Lock()
	if r.answered && r.stale == nil {
		most = min(most, r.c.options.StaleAfter/6)
	}
	r.mu.Unlock()
	pause := min(100*time.Millisecond<<min(max(fails, 0), 10), most)
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok && !starting(err) {
		pause = min(max(pause, time.Duration(seconds)*time.Second), time.Minute)
	}
	return pause - jitter(pause/2)
}

// starting reports whether err means that the API server is still initializing its storage for a kind. The server asks
// clients to retry after one second, but is ready within milliseconds (kubernetes/kubernetes:
// staging/src/k8s.io/apiserver/pkg/storage/cacher).
func starting(err error) bool {
	return err != nil && strings.Contains(err.Error(), "storage is (re)initializing")
}
