package failure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/clean"
	"carrick/cluster/kubeconfig"
)

// LongestSentence is the maximum length of Explain's result, in characters.
const LongestSentence = 400

// Explain describes in one sentence what happened and what it means. The sentence has no period and is safe to display.
// For a nil error, Explain returns "".
func Explain(err error) string {
	if err == nil {
		return ""
	}
	for _, explain := range []func(error) string{
		explainStale, explainOurs, explainAPI, explainTLS, explainPlugin, explainName, explainNetwork,
	} {
		if sentence := explain(err); sentence != "" {
			return Sentence(sentence)
		}
	}
	return Sentence(err.Error())
}

// Sentence converts text to one line that is safe to display.
func Sentence(text string) string {
	text = strings.Join(strings.Fields(clean.Text(text)), " ")
	if runes := []rune(text); len(runes) > LongestSentence {
		text = string(runes[:LongestSentence-1]) + "…"
	}
	return text
}

func explainStale(err error) string {
	var stale *StaleError
	if !errors.As(err, &stale) {
		return ""
	}
	since := "since " + stale.Since.Local().Format(time.TimeOnly)
	if stale.Cause == nil || errors.Is(stale.Cause, ErrNoAnswer) || errors.Is(stale.Cause, ErrTimeout) {
		return "the API server has not answered " + since
	}
	if stale.Never {
		return Explain(stale.Cause)
	}
	return fmt.Sprintf("no valid answer %s: %s", since, Explain(stale.Cause))
}

// explainOurs explains the errors from carrick's own packages.
func explainOurs(err error) string {
	var kubeconfig kubeconfig.Error
	var status apierrors.APIStatus
	var still *StillThereError
	var foreign *foreignError
	errors.As(err, &foreign)
	switch {
	case errors.As(err, &still):
		return err.Error() // the error already names the operation
	case errors.Is(err, ErrClosed):
		return "the connection to the cluster was closed"
	case errors.Is(err, ErrNotServed):
		return withContext(
			"the cluster does not serve this kind: its component is not installed, or has another version", kindOf(err),
		)
	case errors.Is(err, ErrPanicked):
		return "internal error (please report): " + err.Error()
	case errors.Is(err, ErrTimeout):
		return "the API server did not answer in time: it is overloaded, or packets are dropped on the way"
	case errors.Is(err, ErrHeld):
		return "a proxy between this machine and the API server delays answers"
	case errors.Is(err, ErrEnded):
		return "the API server ended the watch and has not answered since"
	case errors.Is(err, errCutShort), errors.Is(err, ErrTooLarge):
		return "the answer is invalid: something between the API server and this machine changes or truncates it (" +
			foreign.err.Error() + ")"
	case foreign != nil:
		return "the server that answers is not an API server, but a proxy, a login page or another service (" +
			foreign.err.Error() + ")"
	case errors.As(err, &kubeconfig):
		return "the kubeconfig cannot be used: " + kubeconfig.Error()
	case errors.As(err, &status):
		return ""
	case errors.Is(err, context.Canceled):
		return "the request was canceled"
	}
	return ""
}

// kindOf returns the text in front of an ErrNotServed, such as "read widgets.example.org".
func kindOf(err error) string {
	text := err.Error()
	i := strings.Index(text, ": "+ErrNotServed.Error())
	if i < 0 {
		return ""
	}
	return strings.TrimPrefix(text[:i], "read ")
}

func withContext(sentence, subject string) string {
	if subject == "" {
		return sentence
	}
	return fmt.Sprintf("%s (%s)", sentence, subject)
}

// after returns the part of text after mark. If text does not contain mark, it returns all of text.
func after(text, mark string) string {
	if _, rest, found := strings.Cut(text, mark); found {
		return rest
	}
	return text
}

// explainPlugin explains why an exec plugin did not return credentials.
func explainPlugin(err error) string {
	text := err.Error()
	if !strings.Contains(text, "getting credentials: ") && !strings.Contains(text, "exec plugin") {
		return ""
	}
	detail := after(text, "getting credentials: ")
	switch {
	case errors.Is(err, exec.ErrNotFound), strings.Contains(detail, "not found"):
		first, _, _ := strings.Cut(detail, "\n")
		return "the credential plugin is not installed or not in PATH: " + first
	case strings.Contains(detail, "standard input is"):
		return "the credential plugin needs the terminal, which carrick uses: log in with the plugin first"
	}
	return "the credential plugin failed: " + detail
}

// explainName explains why a host name cannot be resolved.
func explainName(err error) string {
	var dns *net.DNSError
	if !errors.As(err, &dns) {
		return ""
	}
	switch {
	case dns.IsNotFound:
		return fmt.Sprintf("the name %s does not resolve: it is wrong, or exists only in another network", dns.Name)
	case dns.IsTimeout:
		return fmt.Sprintf("the name %s could not be resolved: the DNS server does not answer", dns.Name)
	}
	return fmt.Sprintf("the name %s could not be resolved: %s", dns.Name, dns.Err)
}

// explainNetwork explains why a connection failed or was lost.
func explainNetwork(err error) string {
	at, through := destination(err)
	var timeout net.Error
	var path *fs.PathError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf(
			"the connection to %s was refused: nothing listens there, or a firewall rejects the connection%s", at, through,
		)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return fmt.Sprintf("there is no route to %s: this machine is not in its network (VPN?)%s", at, through)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fmt.Sprintf(
			"the connection to %s was reset: the server restarts, or a proxy or firewall closes the connection%s", at, through,
		)
	case WentSilent(err):
		return "the connection was lost without notice: the server hangs, or the network is down"
	case errors.As(err, &path):
		return fmt.Sprintf("%s %s: %v", path.Op, path.Path, path.Err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), endedStream(err):
		return fmt.Sprintf(
			"%s closed the connection before it answered: the server restarts, or a proxy or firewall closes the connection%s",
			at, through,
		)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) &&
		timeout.Timeout():
		return fmt.Sprintf("%s did not answer in time: a firewall drops the packets, or the address is wrong%s", at, through)
	}
	return ""
}

// endedStream reports whether err is an HTTP/2 error. net/http does not export the types of these errors (see its
// h2_bundle.go).
func endedStream(err error) bool {
	return slices.ContainsFunc([]string{"GOAWAY", "stream error", "http2: client conn"}, func(part string) bool {
		return strings.Contains(err.Error(), part)
	})
}

// destination returns the remote address of a failed connection. If the connection goes through a proxy, it also
// returns the proxy's address.
func destination(err error) (at, through string) {
	var op *net.OpError
	if !errors.As(err, &op) {
		return "the server", ""
	}
	at = "the server"
	if op.Addr != nil {
		at = op.Addr.String()
	}
	if op.Op == "proxyconnect" || strings.HasPrefix(op.Op, "socks") {
		through = " (this is the proxy that the kubeconfig or the environment names)"
		var inner *net.OpError
		if errors.As(op.Err, &inner) && inner.Addr != nil {
			at = inner.Addr.String()
		}
	}
	return at, through
}
