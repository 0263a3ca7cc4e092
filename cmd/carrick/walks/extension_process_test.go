package walks

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"carrick/cluster"
	"carrick/cluster/certificate"
	"carrick/cluster/clustertest"
	"carrick/cluster/extension"
	"carrick/cluster/kubeconfig"
)

// hooked is the extension as a process of carrick, on loopback, with exactly the permissions that it needs.
type hooked struct {
	t       *testing.T
	program string
	args    []string
	folder  string // of its certificate
	ca      certificate.Pair
	address string // of the webhook

	cmd   *exec.Cmd
	mu    sync.Mutex
	said  []string
	heard chan struct{} // closed at each line, and recreated
	ended chan struct{} // closed when it has
	fault error         // what it ended with
}

// extensionOptions are the options of the process, except for files and addresses.
var extensionOptions = extension.Options{
	Rule:     extension.Rule{Class: "nfs-client", From: []string{"load-policy"}},
	Profiles: extension.Profiles{PSPRole: "psp:load", Level: "baseline"},
	Elects:   true,
	Lease:    "vsphere-extensions/carrick",
}

// hook creates the extension's account and certificate, and starts the process on loopback, or on the given address.
func hook(t *testing.T, box *clustertest.Sandbox, program string, at ...string) *hooked {
	t.Helper()
	h := &hooked{
		t: t, program: program, folder: t.TempDir(), address: freeAddress(t, append(at, "127.0.0.1")[0]),
		heard: make(chan struct{}),
	}
	var err error
	if h.ca, err = certificate.NewAuthority("the extension's", 1); err != nil {
		t.Fatal(err)
	}
	h.renew()
	o := extensionOptions
	h.args = []string{
		"vsphere-extension", "--class", o.Class, "--from", o.From[0], "--psp-role", o.PSPRole, "--level", o.Level,
		"--leader-elect", "--leader-elect-resource-namespace", "vsphere-extensions", "--leader-elect-resource-name",
		"carrick",
		"--bind-address", h.address, "--health-probe-bind-address", "127.0.0.1:0", "--cert-dir", h.folder,
		"--shutdown-delay-duration", "200ms", "--kubeconfig", accountOf(t, box),
	}
	h.start()
	t.Cleanup(h.kill)
	return h
}

func freeAddress(t *testing.T, host string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// accountOf creates a ServiceAccount with the permissions that the extension requires, and returns a kubeconfig for it.
func accountOf(t *testing.T, box *clustertest.Sandbox) string {
	t.Helper()
	everywhere, beside := extension.Rights(extensionOptions)
	docs := []any{
		rbacv1.ClusterRole{TypeMeta: rbacType("ClusterRole"), ObjectMeta: objectMeta("", "extension"), Rules: everywhere},
		rbacv1.Role{TypeMeta: rbacType("Role"), ObjectMeta: objectMeta("vsphere-extensions", "extension"), Rules: beside},
	}
	text := "apiVersion: v1\nkind: Namespace\nmetadata: {name: vsphere-extensions}\n---\napiVersion: v1\nkind: " +
		"ServiceAccount\nmetadata: {name: extension, namespace: vsphere-extensions}\n"
	for _, d := range docs {
		b, err := yaml.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		text += "---\n" + string(b)
	}
	box.Run(t, clustertest.Local, text, "apply", "-f", "-")
	who := "--serviceaccount=vsphere-extensions:extension"
	box.Run(t, clustertest.Local, "", "create", "clusterrolebinding", "extension", "--clusterrole=extension", who)
	box.Run(
		t, clustertest.Local, "", "create", "rolebinding", "extension", "-n", "vsphere-extensions", "--role=extension", who,
	)
	box.Run(
		t, clustertest.Local, "", "create", "clusterrole", extensionOptions.PSPRole, "--verb=use",
		"--resource=podsecuritypolicies.policy", "--resource-name=load",
	)
	c := box.Open(t, clustertest.Local, cluster.Options{})
	token, _, err := c.RequestToken(
		t.Context(), "vsphere-extensions", "extension", cluster.TokenOptions{Expires: time.Hour},
	)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := kubeconfig.Config{Name: "extension", Server: c.Server(), CA: c.CA(), Token: token}
	if err := os.WriteFile(path, []byte(config.Bytes().Reveal()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// renew writes a new certificate of the same CA into the extension's folder.
func (h *hooked) renew() (serial string) {
	h.t.Helper()
	host, _, err := net.SplitHostPort(h.address)
	if err != nil {
		h.t.Fatal(err)
	}
	pair, err := certificate.Issue(h.ca, []string{host, "vsphere-extensions.vsphere-extensions.svc"}, 30)
	if err != nil {
		h.t.Fatal(err)
	}
	for name, data := range map[string][]byte{"tls.key": []byte(pair.Key.Reveal()), "tls.crt": pair.Cert} {
		next := filepath.Join(h.folder, "."+name)
		if err := errors.Join(os.WriteFile(next, data, 0o600), os.Rename(next, filepath.Join(h.folder, name))); err != nil {
			h.t.Fatal(err)
		}
	}
	return string(pair.Cert)
}

// start starts the process, and returns when it answers reviews.
func (h *hooked) start() {
	h.t.Helper()
	h.cmd = exec.Command(h.program, h.args...)
	h.cmd.Env = []string{"HOME=" + h.t.TempDir()}
	said, err := h.cmd.StderrPipe()
	if err == nil {
		err = h.cmd.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.mu.Lock()
	h.said, h.ended = nil, make(chan struct{})
	h.mu.Unlock()
	go h.listen(h.cmd, said, h.ended)
	h.hears("reviews served")
}

func (h *hooked) listen(cmd *exec.Cmd, from io.Reader, ended chan<- struct{}) {
	for lines := bufio.NewScanner(from); lines.Scan(); {
		h.mu.Lock()
		h.said = append(h.said, lines.Text())
		close(h.heard)
		h.heard = make(chan struct{})
		h.mu.Unlock()
	}
	h.fault = cmd.Wait()
	close(ended)
}

// hears waits until the process prints a text.
func (h *hooked) hears(what string) {
	h.t.Helper()
	late := time.After(10 * time.Minute)
	for {
		h.mu.Lock()
		all, more := strings.Join(h.said, "\n"), h.heard
		h.mu.Unlock()
		if strings.Contains(all, what) {
			return
		}
		select {
		case <-more:
		case <-late:
			h.t.Fatalf("it never said %q:\n%s", what, all)
		}
	}
}

// kill kills the process, as a failing node would.
func (h *hooked) kill() {
	_ = h.cmd.Process.Kill() // it may have ended
	<-h.ended
}

// end terminates the process as a kubelet does, and returns its result.
func (h *hooked) end() error {
	if err := h.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-h.ended
	return h.fault
}
