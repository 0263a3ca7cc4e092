package program

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/creack/pty"

	"carrick/cmd/carrick/carricktest"
	"carrick/steps"
	"carrick/steps/linkfile"
)

// BenchmarkFirstFrame measures the time from the start of carrick to its first frame. Neither the terminal nor the
// clusters reply to anything.
func BenchmarkFirstFrame(b *testing.B) {
	program := carricktest.Program(b)
	dir := b.TempDir()
	link := linkfile.New("liqo", "bench")
	link.Path = filepath.Join(dir, "bench.yaml")
	config := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(config, []byte(silentClusters(b)), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, side := range steps.Sides {
		*link.Side(side) = linkfile.EndpointSpec{Context: string(side), Kubeconfig: config}
	}
	if err := link.Save(); err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for b.Loop() {
		took = append(took, firstFrame(b, program, link.Path, dir))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
	b.ReportMetric(float64(took[0].Microseconds())/1000, "min-ms")
	b.ReportMetric(0, "ns/op")
}

// silentClusters returns a kubeconfig of two clusters that accept connections and never respond.
func silentClusters(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- {name: silent, cluster: {server: "https://%s"}}
contexts:
- {name: local, context: {cluster: silent, user: nobody}}
- {name: remote, context: {cluster: silent, user: nobody}}
users:
- {name: nobody, user: {token: none}}
`, l.Addr())
}

func firstFrame(b *testing.B, program, link, dir string) time.Duration {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), carricktest.ShownWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, link)
	cmd.Env = append(carricktest.OwnEnvironment(dir), "TERM=xterm-256color")
	start := time.Now()
	ours, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: carricktest.Rows, Cols: carricktest.Columns})
	if err != nil {
		b.Fatal(err)
	}
	defer ours.Close()
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	var seen []byte
	buf := make([]byte, 4096)
	for !bytes.Contains(seen, []byte("Clusters")) { // the title of the first step
		n, err := ours.Read(buf)
		if err != nil {
			b.Fatalf("no frame: %v: %q", err, seen)
		}
		seen = append(seen, buf[:n]...)
	}
	return time.Since(start)
}
