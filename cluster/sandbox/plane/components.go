package plane

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"carrick/cluster/sandbox/roles"
)

const stagesFile = "stages.yaml"

// component is a control plane program that envtest does not start.
type component struct {
	name  string
	flags []string
}

// noFolder is a FlexVolume plugin directory that cannot exist. By default, the controller manager would create and
// watch a directory under /usr/libexec/kubernetes.
const noFolder = "/proc/no-flexvolume"

// Client-side rate limits for the controller manager. The controller manager creates a ServiceAccount for each
// controller before it starts the controllers. With the default limits, this takes five seconds.
const (
	unlimitedQPS   = "--kube-api-qps=1000"
	unlimitedBurst = "--kube-api-burst=2000"
)

func (p *Plane) controllerManager() component {
	kubeconfig := p.file(roles.ControllerManager + ".kubeconfig")
	return component{roles.ControllerManager, []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		"--secure-port=0",
		unlimitedQPS, unlimitedBurst,
		// kwok reports a node as Ready only once. Without this flag, the controller manager would consider the node lost
		// after a minute and evict its pods.
		"--node-monitor-grace-period=8760h",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + p.secrets.accountPrivate,
		"--root-ca-file=" + p.secrets.authorityFile,
		"--cluster-signing-cert-file=" + p.secrets.authorityFile,
		"--cluster-signing-key-file=" + p.secrets.authorityKey,
		"--cluster-name=" + p.Context(),
		"--allocate-node-cidrs=true",
		"--cluster-cidr=" + p.PodCIDR,
		"--service-cluster-ip-range=" + p.ServiceCIDR,
		"--flex-volume-plugin-dir=" + noFolder,
		"--controllers=*,-namespace-controller", // runNamespaces replaces it
	}}
}

func (p *Plane) scheduler() component {
	return component{roles.Scheduler, []string{
		"--kubeconfig=" + p.file(roles.Scheduler+".kubeconfig"),
		"--leader-elect=false",
		"--secure-port=0",
		unlimitedQPS, unlimitedBurst,
	}}
}

func (p *Plane) kwok() component {
	return component{roles.Kwok, []string{
		"--kubeconfig=" + p.file(roles.Kwok+".kubeconfig"),
		"--config=" + p.file(stagesFile),
		"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake", // kwok ignores all other nodes
		"--cidr=" + p.PodCIDR,
	}}
}

func (p *Plane) runComponents() error {
	if err := os.WriteFile(p.file(stagesFile), stages(), 0o600); err != nil {
		return err
	}
	for _, c := range []component{p.controllerManager(), p.scheduler(), p.kwok()} {
		if err := p.run(c); err != nil {
			return err
		}
	}
	var err error
	p.stopNamespaces, err = p.runNamespaces()
	return err
}

// killComponents kills all components. Without the API server, some components would exit when they lose their lease.
// The others would retry with exponential backoff, up to several minutes.
func (p *Plane) killComponents() {
	p.stopNamespaces()
	for _, r := range p.running {
		r.kill()
	}
	p.running = nil
}

// run starts a component and restarts it when it exits. When run gives up, it sends the error to died.
func (p *Plane) run(c component) error {
	start := func() (*exec.Cmd, error) {
		if err := p.life.Err(); err != nil {
			return nil, err // the sandbox's directory is being removed
		}
		out, err := p.log(c.name)
		if err != nil {
			return nil, err
		}
		defer out.Close()
		cmd := exec.Command(p.binary(c.name), c.flags...)
		cmd.Stdout, cmd.Stderr = out, out
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return cmd, cmd.Start()
	}
	r, err := keepUp(start, func(err error) { p.died <- p.failed(c.name, err) })
	if err != nil {
		return p.failed(c.name, err)
	}
	p.running = append(p.running, r)
	return nil
}

// failed returns the error for a component that exited. It includes the end of the component's log.
func (p *Plane) failed(component string, err error) error {
	if err == nil {
		err = errors.New("the process exited")
	}
	return fmt.Errorf("%s of %s: %w%s", component, p.Name, err, tail(p.logPath(component)))
}

const tailLines = 12

func tail(path string) string {
	data, err := os.ReadFile(path)
	if err != nil || len(data) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	return "\nlast lines of its log:\n  " + strings.Join(lines, "\n  ")
}
