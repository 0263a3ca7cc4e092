package upstream

import (
	"context"
	"io"
	"net"
	"testing"
)

// Forward accepts connections on l and forwards them to an address on this machine, until cut is called or the test
// ends.
func Forward(t testing.TB, l net.Listener, to string) (cut func()) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go forward(ctx, in, to)
		}
	}()
	cut = func() {
		l.Close()
		cancel()
	}
	t.Cleanup(cut)
	return cut
}

func forward(ctx context.Context, in net.Conn, to string) {
	defer in.Close()
	out, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
	if err != nil {
		return
	}
	defer out.Close()
	defer context.AfterFunc(ctx, func() { in.Close(); out.Close() })()
	go func() {
		_, _ = io.Copy(out, in)
		out.Close()
	}()
	_, _ = io.Copy(in, out)
}
