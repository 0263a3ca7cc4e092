package webnode

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

const (
	rootsOwn   = "/root/.kube/config"
	again      = 3 * time.Second // between attempts after a failed login
	hookWithin = 4 * time.Second
)

// hook contains the portal's pre-hook and the files that it reads. It runs at login.
type hook struct {
	path, script, env, kubeconfig string
	state                         string // hash of all fields and files
}

var (
	exported = regexp.MustCompile(`(?m)^\s*export KUBECONFIG=["']?([^"'\s]+)`)
	podLabel = regexp.MustCompile(`pod-security\.kubernetes\.io/[a-z-]+=[a-z0-9.-]+`)
)

// Look logs in the users if the hook or a file that it reads has changed. While logins fail, it retries them every 3
// seconds (the constant again).
func (n *Node) Look(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	h, ok := n.hook()
	if !ok || (h.state == n.played && (!n.failed || time.Since(n.at) < again)) {
		return nil
	}
	first := h.state != n.played
	var failed error
	for _, user := range Users {
		err := n.login(ctx, h, user)
		switch {
		case err == nil || !first:
		case errors.Is(err, fs.ErrPermission):
			n.say("%s threw exception '%s' for %s", h.path, err, user)
		case !continues(h.script):
			n.say("%s exited with 1 for user %s. stderr was '%s'", h.path, user, err)
		}
		failed = errors.Join(failed, err)
	}
	n.played, n.failed, n.at = h.state, failed != nil, time.Now()
	return failed
}

// hook returns the pre-hook in the portal's configuration. ok is false if there is none or a required file does not
// exist yet.
func (n *Node) hook() (hook, bool) {
	var h hook
	text, err := n.Read(Portal)
	if err != nil {
		return h, false
	}
	var portal struct {
		Hook string `json:"pun_pre_hook_root_cmd"`
	}
	if err := yaml.Unmarshal([]byte(text), &portal); err != nil || portal.Hook == "" {
		return h, false
	}
	h.path, h.kubeconfig = portal.Hook, rootsOwn
	if h.script, err = n.Read(h.path); err != nil {
		return h, false
	}
	if m := exported.FindStringSubmatch(h.script); m != nil {
		h.kubeconfig = m[1]
	}
	if h.env, err = n.Read(HookEnv); err != nil || !n.Has(h.kubeconfig) {
		return h, false
	}
	sum := sha256.New()
	for _, name := range append([]string{h.path, HookEnv, h.kubeconfig}, n.referred(h.kubeconfig)...) {
		text, err := n.Read(name)
		info, _ := n.files.Stat(strings.TrimPrefix(name, "/"))
		mode := ""
		if info != nil {
			mode = info.Mode().String()
		}
		fmt.Fprintf(sum, "%q %q %s %v\n", name, text, mode, err)
	}
	h.state = hex.EncodeToString(sum.Sum(nil))
	return h, true
}

// login runs the fake hook for a user: k8s-bootstrap-ondemand.sh, and the pod security labels that a wrapper can add.
// If an object is rejected, kubectl apply continues with the other objects but exits with an error
// (kubernetes/kubernetes v1.37.2 staging/src/k8s.io/kubectl/pkg/cmd/apply/apply.go). The script then exits before it
// creates the pull Secret.
func (n *Node) login(ctx context.Context, h hook, user string) error {
	ctx, cancel := context.WithTimeout(ctx, hookWithin)
	defer cancel()
	if info, err := n.files.Stat(strings.TrimPrefix(h.path, "/")); err != nil || info.Mode()&0o100 == 0 {
		return notExecutable(h.path)
	}
	env, err := source(h.env)
	if err != nil {
		return fmt.Errorf("%s: %w", HookEnv, err)
	}
	config, err := n.config(h.kubeconfig)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	k := kubectl{client}
	namespace := env["NAMESPACE_PREFIX"] + user
	var refused error
	for _, o := range objects(env, namespace, user, time.Now()) {
		refused = errors.Join(refused, k.apply(ctx, o))
	}
	if refused != nil {
		return refused
	}
	if err := n.pullSecret(ctx, k, env, namespace); err != nil {
		return err
	}
	return k.label(ctx, namespace, podLabel.FindAllString(h.script, -1))
}

// notExecutable is Ruby's error for a hook that root cannot execute. Its value is the path.
type notExecutable string

func (h notExecutable) Error() string { return "Permission denied - " + string(h) }

func (notExecutable) Unwrap() error { return fs.ErrPermission }

// continues reports whether a wrapper script continues after the bootstrap script fails. It does if other commands
// follow, the wrapper has no set -e, and the bootstrap line has no ||.
func continues(script string) bool {
	behind := false
	for line := range strings.SplitSeq(script, "\n") {
		switch line = strings.TrimSpace(line); {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "set -e"):
			return false
		case strings.Contains(line, "k8s-bootstrap-ondemand.sh"):
			if strings.Contains(line, "||") {
				return false
			}
			behind = true
		case behind:
			return true
		}
	}
	return false
}

// pullSecret creates the Secret for a registry and adds it to the default ServiceAccount (OSC/ondemand e5bbaf1d7
// hooks/k8s-bootstrap/k8s-bootstrap-ondemand.sh). If the file does not exist, kubectl create secret only prints an
// error. The script then fails at the kubectl apply that reads its output.
func (n *Node) pullSecret(ctx context.Context, k kubectl, env map[string]string, namespace string) error {
	name := env["IMAGE_PULL_SECRET"]
	if name == "" {
		return nil
	}
	text, err := n.Read(env["REGISTRY_DOCKER_CONFIG_JSON"])
	if err != nil {
		return fmt.Errorf("error: error reading %s: no such file or directory\nerror: no objects passed to apply",
			env["REGISTRY_DOCKER_CONFIG_JSON"])
	}
	secret := object("v1", "Secret", namespace, name)
	secret.Object["type"] = "kubernetes.io/dockerconfigjson"
	secret.Object["data"] = map[string]any{".dockerconfigjson": base64.StdEncoding.EncodeToString([]byte(text))}
	if err := k.apply(ctx, secret); err != nil {
		return err
	}
	patch := []byte(`{"imagePullSecrets":[{"name":` + strconv.Quote(name) + `}]}`)
	_, err = k.Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}).Namespace(namespace).
		Patch(ctx, "default", types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl-patch"})
	return err
}

// referred returns the files that a kubeconfig on the node references.
func (n *Node) referred(name string) []string {
	config, err := n.load(name)
	if err != nil {
		return nil
	}
	var names []string
	for _, c := range config.Clusters {
		names = append(names, at(name, c.CertificateAuthority))
	}
	for _, u := range config.AuthInfos {
		names = append(names, at(name, u.TokenFile), at(name, u.ClientCertificate), at(name, u.ClientKey))
	}
	return names
}

// at returns the path on the node for a file that a kubeconfig references. It returns "" for an empty name.
func at(kubeconfig, name string) string {
	if name == "" || path.IsAbs(name) {
		return name
	}
	return path.Join(path.Dir(kubeconfig), name)
}

func (n *Node) load(name string) (*api.Config, error) {
	text, err := n.Read(name)
	if err != nil {
		return nil, err
	}
	return clientcmd.Load([]byte(text))
}

// config returns the client configuration of root's kubectl. It reads referenced files from the node's directory, and
// runs no credential plugins.
func (n *Node) config(name string) (*rest.Config, error) {
	config, err := n.load(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, c := range config.Clusters {
		if err := n.inline(name, &c.CertificateAuthority, &c.CertificateAuthorityData); err != nil {
			return nil, err
		}
	}
	for _, u := range config.AuthInfos {
		if u.Exec != nil || u.AuthProvider != nil {
			return nil, fmt.Errorf("%s: the stand-in does not run login plugins", name)
		}
		token := []byte(u.Token)
		if u.TokenFile != "" {
			token = nil
		}
		if err := errors.Join(
			n.inline(name, &u.ClientCertificate, &u.ClientCertificateData), n.inline(name, &u.ClientKey, &u.ClientKeyData),
			n.inline(name, &u.TokenFile, &token),
		); err != nil {
			return nil, err
		}
		u.Token = strings.TrimSpace(string(token))
	}
	out, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out.QPS = -1
	return out, nil
}

func (n *Node) inline(kubeconfig string, file *string, data *[]byte) error {
	if *file == "" || len(*data) > 0 {
		*file = ""
		return nil
	}
	text, err := n.Read(at(kubeconfig, *file))
	if err != nil {
		return fmt.Errorf("open %s: no such file or directory", at(kubeconfig, *file))
	}
	*file, *data = "", []byte(text)
	return nil
}

// kubectl is a client that behaves like the hook's kubectl commands.
type kubectl struct{ dynamic.Interface }

var resources = map[string]schema.GroupVersionResource{
	"Namespace":     {Version: "v1", Resource: "namespaces"},
	"Secret":        {Version: "v1", Resource: "secrets"},
	"NetworkPolicy": {Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
	"RoleBinding":   {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
}

func (k kubectl) apply(ctx context.Context, o *unstructured.Unstructured) error {
	var to dynamic.ResourceInterface = k.Resource(resources[o.GetKind()])
	if ns := o.GetNamespace(); ns != "" {
		to = k.Resource(resources[o.GetKind()]).Namespace(ns)
	}
	_, err := to.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "kubectl-client-side-apply", Force: true})
	if apierrors.IsUnauthorized(err) {
		return errors.New("error: You must be logged in to the server (Unauthorized)")
	}
	return err
}

func (k kubectl) label(ctx context.Context, namespace string, words []string) error {
	if len(words) == 0 {
		return nil
	}
	var pairs []string
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		pairs = append(pairs, strconv.Quote(key)+":"+strconv.Quote(value))
	}
	patch := []byte(`{"metadata":{"labels":{` + strings.Join(pairs, ",") + `}}}`)
	_, err := k.Resource(resources["Namespace"]).Patch(
		ctx, namespace, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl-label"},
	)
	return err
}
