package interlink_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/upstream"
	"carrick/steps/stepstest"
)

// certificates is the directory in which interLink's virtual kubelet stores its certificate, whatever TMPDIR is.
const certificates = "/tmp/certs"

// TestUpstreamServingCertificate runs interLink's own virtual kubelet with the chart's permissions. No controller
// approves its certificate requests.
func TestUpstreamServingCertificate(t *testing.T) {
	src := upstream.Find(t, "interLink")
	if _, err := os.Stat(certificates); !errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%s exists, and the virtual kubelet would use the certificate in it", certificates)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(certificates); err != nil {
			t.Error(err)
		}
	})
	bin := src.Build(t, "./cmd/virtual-kubelet")
	if err := os.Rename(filepath.Join(bin, "virtual-kubelet"), filepath.Join(bin, "vk")); err != nil {
		t.Fatal(err)
	}
	box := clustertest.Start(t)
	x := joined(t, box, "serving-pending", true, nil)
	config := filepath.Join(t.TempDir(), "InterLinkConfig.yaml")
	text := box.Run(
		t, clustertest.Local, "", "-n", "interlink", "get", "cm", "virtual-node-virtual-kubelet-config", "-o",
		`jsonpath={.data.InterLinkConfig\.yaml}`,
	)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBELET_URL", "127.0.0.1")
	r := upstream.Runner{
		Box: box, Side: clustertest.Local, Bin: bin, Env: map[string]string{"CONFIGPATH": config, "KUBELET_PORT": "0"},
	}
	p := r.Deployment(t, "interlink", "virtual-node-node", nil)
	made := says(t, p, "Created CSR ")
	name := strings.Fields(made)[0]
	src.Try(t, "the check names the request of its virtual kubelet, and the fix is enough", func(t *testing.T) {
		x.Finds([]stepstest.Finding{
			{
				Check: "serving-certificate", Found: name + " of the virtual kubelet is waiting for approval",
				Fix: "certificate approve " + name, Fixed: true,
			},
		})
		says(t, p, "approved, certificate received")
	})
}

// says waits until a program logs what, and returns the log after it.
func says(t *testing.T, p *upstream.Program, what string) string {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if _, after, ok := strings.Cut(p.Tail(), what); ok && strings.Contains(after, "\n") {
			return after
		}
	}
	t.Fatalf("in a minute it does not say %q:\n%s", what, p.Tail())
	return ""
}
