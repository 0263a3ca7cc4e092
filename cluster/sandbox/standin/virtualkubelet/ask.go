package virtualkubelet

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientapi "k8s.io/client-go/tools/clientcmd/api"
)

// gone reports whether an image no longer exists in its registry.
func gone(image string) bool {
	image = strings.TrimPrefix(image, "docker.io/")
	return strings.HasPrefix(image, "bitnami/")
}

// command returns the container's kubectl command, or false if it is not supported. It supports only commands that
// read, without flags for another server or credential.
func command(c corev1.Container) ([]string, bool) {
	words := slices.Concat(c.Command, c.Args)
	switch {
	case len(c.Command) > 0 && filepath.Base(c.Command[0]) == "kubectl":
		words = words[1:]
	case len(c.Command) > 0, !strings.Contains(c.Image, "kubectl"):
		return nil, false
	}
	if len(words) == 0 || !slices.Contains([]string{"auth", "get", "version", "api-resources", "api-versions"}, words[0]) {
		return nil, false
	}
	for _, word := range words {
		name, _, _ := strings.Cut(word, "=")
		if slices.Contains(
			[]string{
				"--kubeconfig", "--server", "-s", "--token", "--context", "--cluster", "--user", "--client-certificate",
				"--client-key", "--certificate-authority", "--as", "-f", "--filename", "--cache-dir", "-w", "--watch",
			},
			name,
		) {
			return nil, false
		}
	}
	return words, true
}

// ask runs kubectl with a container's environment and files.
func (p *Player) ask(
	ctx context.Context, pod *corev1.Pod, words []string, environment []corev1.EnvVar, files map[string]string,
) (int32, string) {
	token, has := files["token"]
	host := server(environment)
	if !has || host == "" {
		return 1, refused
	}
	dir := filepath.Join(p.options.Dir, string(pod.UID))
	if err := makeDir(dir); err != nil {
		return 1, "stand-in: " + err.Error() + "\n"
	}
	defer removeDir(dir)
	at, err := kubeconfig(dir, host, files["namespace"], token, files["ca.crt"])
	if err != nil {
		return 1, "stand-in: " + err.Error() + "\n"
	}
	cmd := exec.CommandContext(ctx, p.options.Kubectl, append(slices.Clone(words), "--request-timeout=10s")...)
	cmd.Env = []string{"KUBECONFIG=" + at, "HOME=" + dir}
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	said := strings.ReplaceAll(out.String(), dir, "") // restores container paths
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return int32(max(exit.ExitCode(), 1)), said
	case err != nil:
		return 1, said + "stand-in: " + err.Error() + "\n"
	}
	return 0, said
}

// kubeconfig writes a kubeconfig that is equivalent to a container's in-cluster configuration.
func kubeconfig(dir, host, namespace, token, ca string) (string, error) {
	if token == "" {
		// In a container, kubectl sends an empty credential if the token file is empty. With an empty token in a
		// kubeconfig, it would prompt for a user name. A token of one space has the effect of an empty token.
		token = " "
	}
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte(token), 0o600); err != nil {
		return "", err
	}
	config := clientapi.NewConfig()
	config.Clusters["in"] = &clientapi.Cluster{Server: host, CertificateAuthorityData: []byte(ca)}
	config.AuthInfos["in"] = &clientapi.AuthInfo{TokenFile: filepath.Join(dir, "token")}
	config.Contexts["in"] = &clientapi.Context{Cluster: "in", AuthInfo: "in", Namespace: namespace}
	config.CurrentContext = "in"
	at := filepath.Join(dir, "config")
	data, err := clientcmd.Write(*config)
	if err != nil {
		return "", err
	}
	return at, os.WriteFile(at, data, 0o600)
}

func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700)
}

func removeDir(dir string) { _ = os.RemoveAll(dir) }
