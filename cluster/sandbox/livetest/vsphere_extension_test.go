package livetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const extensionSpace = "vsphere-extensions"

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

// programs returns the PIDs of the extension's processes, without the processes that wrap them.
func programs(t *testing.T, dir string) []int {
	t.Helper()
	var found []int
	for _, line := range processes(t, dir) {
		number, name, _ := strings.Cut(line, " ")
		if name != os.Getenv(programVariable) {
			continue
		}
		pid, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, pid)
	}
	return found
}

// endpoints returns the addresses of the ready endpoints of the extension's Service.
func (g *guest) endpoints() (ready []string) {
	g.t.Helper()
	slices, err := g.client.DiscoveryV1().EndpointSlices(extensionSpace).List(
		g.t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=vsphere-extensions"},
	)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, s := range slices.Items {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready = append(ready, e.Addresses...)
			}
		}
	}
	return ready
}

// get waits until a new shared claim in Bob's namespace would get the StorageClass.
func (g *guest) get(class string) {
	g.t.Helper()
	eventually(g.t, happens, func() error {
		got, err := g.classOf(g.claim("bob", "try", "vsphere-policy", corev1.ReadWriteMany))
		if err == nil && got != class {
			err = fmt.Errorf("it gets %s", got)
		}
		return err
	})
}

func TestTheExtensionIsARealProgram(t *testing.T) {
	g := seedGuest(t, "webhook")
	g.get("nfs-client")
	if all := g.endpoints(); len(all) != 2 || all[0] == all[1] || !strings.HasPrefix(all[0], "10.244.") {
		t.Errorf("endpoints: %v", all)
	}
	if got, err := g.classOf(g.claim("bob", "try", "vsphere-policy", corev1.ReadWriteOnce)); err != nil ||
		got != "vsphere-policy" {
		t.Errorf("one that one pod writes to gets %s, %v", got, err)
	}
	g.logs(extensionSpace, "app=vsphere-extensions", "certificate /certificate") // the container's path
	// Killed, it is neither ready nor asked, and comes back.
	pids := programs(t, shared.Dir)
	if len(pids) != 2 {
		t.Fatalf("programs: %v in %v", pids, processes(t, shared.Dir))
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	g.get("vsphere-policy") // nobody is asked
	eventually(t, happens, func() error {
		pods, err := g.client.CoreV1().Pods(extensionSpace).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(g.endpoints()) > 0 {
			return fmt.Errorf("ready: %v, %w", g.endpoints(), err)
		}
		for _, pod := range pods.Items {
			s := pod.Status.ContainerStatuses[0]
			if s.State.Waiting == nil || s.State.Waiting.Reason != "CrashLoopBackOff" ||
				s.LastTerminationState.Terminated == nil || s.LastTerminationState.Terminated.ExitCode != 137 {
				return fmt.Errorf("%+v", s)
			}
		}
		return nil
	})
	g.get("nfs-client")
	pods, err := g.client.CoreV1().Pods(extensionSpace).List(t.Context(), metav1.ListOptions{})
	if err != nil || pods.Items[0].Status.ContainerStatuses[0].RestartCount != 1 {
		t.Errorf("%v, %v", pods, err)
	}
	// A pod that is gone takes its program with it.
	g.patch(deployments, extensionSpace, "vsphere-extensions", `{"spec":{"replicas":0}}`)
	eventually(t, happens, func() error {
		if left := programs(t, shared.Dir); len(left) > 0 {
			return fmt.Errorf("left: %v", left)
		}
		return nil
	})
	g.get("vsphere-policy")
}

func TestTheExtensionHasItsAccountAndItsFiles(t *testing.T) {
	g := seedGuest(t, "webhook")
	// Without a Secret it does not start; with a token it is its account, and no more.
	g.patch(
		deployments, extensionSpace, "vsphere-extensions",
		`{"spec":{"replicas":1,"template":{"spec":{"automountServiceAccountToken":true,"volumes":[{"name":"certificate","secret":{"secretName":"later"}}],`+
			`"containers":[{"name":"extension","image":"registry.example.com/carrick:1.0","args":["vsphere-extension","--class","nfs-client","--bind-address",":8443","--health-probe-bind-address=:8081","--cert-dir","/certificate"],`+
			`"env":[{"name":"POD_NAME","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],"ports":[{"name":"https","containerPort":8443},{"name":"health","containerPort":8081}],`+
			`"readinessProbe":{"httpGet":{"path":"/readyz","port":"health"}},"volumeMounts":[{"name":"certificate","mountPath":"/certificate"}],`+
			`"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}]}}}}`,
	)
	g.says(extensionSpace, "vsphere-extensions-", "FailedMount", `secret "later" not found`)
	pair, err := g.client.CoreV1().Secrets(extensionSpace).Get(t.Context(), "vsphere-extensions-tls", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	later := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "later"}, Type: pair.Type, Data: pair.Data}
	if _, err := g.client.CoreV1().Secrets(extensionSpace).Create(t.Context(), later, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	g.logs(
		extensionSpace, "app=vsphere-extensions",
		"I am system:serviceaccount:vsphere-extensions:vsphere-extensions, and of secrets: secrets is forbidden",
	)
	g.logs(extensionSpace, "app=vsphere-extensions", "pod vsphere-extensions-")
	g.get("nfs-client")
}

// TestWithoutAProgramThereIsNoExtension verifies that without the carrick program the extension's pods wait, and that
// their status says why.
func TestWithoutAProgramThereIsNoExtension(t *testing.T) {
	t.Setenv(programVariable, filepath.Join(t.TempDir(), "none"))
	s := own(t)
	defer func() { _ = s.end() }()
	if ok, fault := s.tell(t, "seed vsphere webhook"); ok || !strings.Contains(fault, "CARRICK_PROGRAM") {
		t.Errorf("%v, %s", ok, fault)
	}
	client := s.client(t, "local")
	eventually(t, happens, func() error {
		pods, err := client.CoreV1().Pods(extensionSpace).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(pods.Items) != 2 || len(pods.Items[0].Status.ContainerStatuses) == 0 {
			return fmt.Errorf("%v, %w", pods, err)
		}
		data, err := client.CoreV1().Pods(extensionSpace).GetLogs(
			pods.Items[0].Name, &corev1.PodLogOptions{},
		).DoRaw(t.Context())
		if w := pods.Items[0].Status.ContainerStatuses[0].State.Waiting; err != nil || w == nil ||
			w.Reason != "CreateContainerError" || !strings.Contains(string(data), "the binary carrick does not exist") {
			return fmt.Errorf("%+v says %s, %w", pods.Items[0].Status.ContainerStatuses, data, err)
		}
		return nil
	})
}

func TestKillOfTheSandboxEndsTheExtension(t *testing.T) {
	s, err := start(exec.Command(program))
	if err != nil {
		t.Fatal(err)
	}
	s.must(t, "seed vsphere webhook")
	if len(programs(t, s.Dir)) != 2 {
		t.Fatalf("only these run: %v", processes(t, s.Dir))
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	noneLeft(t, s.Dir)
}
