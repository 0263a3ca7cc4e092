package liqonet

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kept is the maximum number of lines in a journal.
const kept = 200

// journal is a program's log. It skips a line that is the same as the previous one.
type journal struct {
	mu    sync.Mutex
	lines []string
	last  string
}

func (j *journal) sayf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	j.mu.Lock()
	defer j.mu.Unlock()
	if line == j.last {
		return
	}
	j.last = line
	j.lines = append(j.lines, time.Now().UTC().Format(time.RFC3339)+" "+line+"\n")
	j.lines = j.lines[max(0, len(j.lines)-kept):]
}

func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "")
}

// event records an event unless it is the same as the object's previous one.
func (p *Player) event(ctx context.Context, of corev1.ObjectReference, kind, reason, message string) {
	key := string(of.UID)
	if p.said[key] == reason+message {
		return
	}
	now := metav1.Now()
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: of.Name + ".", Namespace: of.Namespace},
		InvolvedObject: of, Type: kind, Reason: reason, Message: message,
		Source:         corev1.EventSource{Component: manager},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	if _, err := p.client.CoreV1().Events(of.Namespace).Create(ctx, event, metav1.CreateOptions{}); err == nil {
		p.said[key] = reason + message
	}
}

// Log returns the logs of the controller manager and the gateways. It is a kubelet.Source.
func (p *Player) Log(namespace, pod, container string) (string, bool) {
	if namespace == liqoNamespace && container == "controller-manager" {
		return "stand-in: the controllers of the network\n" + p.log.text(), true
	}
	if container != wireguardName {
		return "", false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.gateways {
		if g.namespace == namespace && g.pod == pod {
			return "stand-in: a WireGuard endpoint on loopback\n" + g.log.text(), true
		}
	}
	return "", false
}

// older reports whether version is older than major.minor. It returns false if version cannot be parsed.
func older(version string, major, minor int) bool {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (a < major || a == major && b < minor)
}
