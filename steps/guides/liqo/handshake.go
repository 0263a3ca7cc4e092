package liqo

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"time"

	"carrick/cluster/probe"
	"carrick/cluster/tracked"
	"carrick/steps"
)

// handshakeAge is how long the outcome of a handshake is cached.
const handshakeAge = 30 * time.Second

type handshakeOutcome struct {
	report probe.HandshakeReport
	err    error
}

// gatewayAnswers attempts a WireGuard handshake with the keys of this side's gateway. While a tunnel is up, it skips
// the handshake, because the other gateway would then send this side's packets to this machine.
func gatewayAnswers(ctx context.Context, e steps.Env) steps.Result {
	if err := e.PeerUnconfirmed(); err != nil {
		return steps.Errored(err)
	}
	for _, side := range []struct {
		name  string
		facts steps.Facts
	}{{e.SideName(), e.Own}, {e.PeerName(), e.Peer}} {
		if connected(side.facts) {
			return steps.Skipped(
				"the tunnel is up (the %s's Connection is Connected). A handshake with the same keys would redirect the tunnel's "+
					"traffic to this machine",
				side.name,
			)
		}
	}
	t, err := gatewayTargetOf(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	own, peer, err := handshakeKeys(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	at := net.JoinHostPort(t.host, strconv.Itoa(t.port))
	seen, err := tracked.Look(
		ctx, fmt.Sprintf("wireguard/%s/%s/%s", at, own.Public(), peer), handshakeAge,
		func(ctx context.Context) (handshakeOutcome, error) {
			report, err := probe.Handshake(ctx, at, own, peer)
			if errors.Is(err, context.Canceled) {
				return handshakeOutcome{}, err // a canceled handshake proves nothing
			}
			return handshakeOutcome{report, err}, nil
		},
	)
	if err != nil {
		return steps.Errored(err)
	}
	return judgeHandshake(e, at, t, seen)
}

func handshakeKeys(ctx context.Context, e steps.Env) (own probe.PrivateKey, peer probe.PublicKey, err error) {
	s, err := gatewayKeyPair(ctx, e)
	if err != nil {
		return own, peer, err
	}
	if own, err = probe.ParsePrivateKey([]byte(s.Data[privateKeyField].Reveal())); err != nil {
		return own, peer, fmt.Errorf("read the keys of the %s's gateway: %w", e.SideName(), err)
	}
	key, err := e.Peer.Text("public-key")
	if err != nil {
		return own, peer, err
	}
	raw, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		return own, peer, fmt.Errorf("read the public key of the %s's gateway: %w", e.PeerName(), err)
	}
	peer, err = probe.ParsePublicKey(raw)
	return own, peer, err
}

func judgeHandshake(e steps.Env, at string, t gatewayTarget, seen handshakeOutcome) steps.Result {
	from := ""
	if a := seen.report.From.Addr(); a.IsValid() && !a.IsUnspecified() {
		from = ", " + a.String() // the address shows which network this machine uses
	}
	here := "from this machine" + from
	var silent *probe.NoAnswerError
	var dns *net.DNSError
	switch {
	case seen.err == nil:
		return steps.Passed(
			"%s answered in %d ms (%s). UDP passes, and both keys are correct", at, seen.report.Took.Milliseconds(), here,
		)
	case errors.As(seen.err, &silent):
		return steps.Warned(
			fmt.Sprintf(
				"%s did not answer (%s). Packets are dropped, no process listens, the gateway has other keys, or this machine's "+
					"clock is behind",
				at, here,
			),
			echoTest(e, t),
		)
	case errors.Is(seen.err, syscall.ECONNREFUSED):
		return steps.Warned(
			fmt.Sprintf(
				"%s refused the packet. Nothing listens on that UDP port, or a firewall rejects the packet (%s)", at, here,
			),
			peerGateway(e)+"get pods,services -o wide",
		)
	case errors.Is(seen.err, syscall.EHOSTUNREACH), errors.Is(seen.err, syscall.ENETUNREACH):
		return steps.Warned(
			fmt.Sprintf("no route to %s (%s). The nodes of the %s may have a route", at, here, e.SideName()),
			echoTest(e, t),
		)
	case errors.As(seen.err, &dns):
		return steps.Warned(
			fmt.Sprintf("%s does not resolve on this machine", t.host), podCommand(e, "nslookup "+steps.Quoted(t.host)),
		)
	case errors.Is(seen.err, probe.ErrKey):
		return steps.Warned("the handshake is not possible: "+keyFault(errors.Unwrap(seen.err)), e.ApplyStep("keys"))
	}
	return steps.Errored(seen.err)
}

// peerGateway returns the beginning of a kubectl command for the other side's tenant namespace.
func peerGateway(e steps.Env) string {
	return e.PeerKubectl() + " -n " + steps.Quoted(peerNamespace(e)) + " "
}

// echoTest returns the commands of the test in upstream's FAQ. They create an echo server on the other side, and a pod
// on this side that connects to it.
func echoTest(e steps.Env, t gatewayTarget) string {
	space := " -n " + steps.Quoted(peerNamespace(e)) + " "
	return "# test whether UDP to " + t.host + " is open (security group, firewall, NAT), without Liqo:\n" +
		e.PeerKubectl() + space + "create deployment udpecho --image=ghcr.io/liqotech/udpecho --port=5000\n" +
		e.PeerKubectl() + space + "expose deployment udpecho --type=NodePort --protocol=UDP --port=5000\n" +
		podCommand(e, "nc -u "+steps.Quoted(t.host)+" NODEPORT") +
		"    # udpecho returns your input in upper case; delete udpecho afterwards"
}
