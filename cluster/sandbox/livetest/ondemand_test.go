package livetest

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// webNode is the web node's folder in a running scenario, with the scenario's answers.
type webNode struct {
	t       *testing.T
	root    string
	answers map[string]string
}

// seedPortal seeds the scenario ondemand in the shared sandbox, which is reset when the test ends.
func seedPortal(t *testing.T, fault string) *webNode {
	t.Helper()
	t.Cleanup(func() { shared.must(t, "reset") })
	said := shared.ask(t, strings.TrimSpace("seed ondemand "+fault))
	if !said.OK || said.Hosts["local"] == "" {
		t.Fatalf("seed ondemand %s: %+v", fault, said)
	}
	return &webNode{t, said.Hosts["local"], said.Answers}
}

// read returns the content of a file on the node, or "" if the file does not exist.
func (n *webNode) read(name string) string {
	n.t.Helper()
	data, err := os.ReadFile(filepath.Join(n.root, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		n.t.Fatal(err)
	}
	return string(data)
}

// web returns an HTTP client that trusts the CAs that the node trusts.
func (n *webNode) web() *http.Client {
	n.t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(n.read("/etc/pki/tls/certs/ca-bundle.crt"))) {
		n.t.Fatal("the node trusts nobody")
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	n.t.Cleanup(client.CloseIdleConnections)
	return client
}

// issuer returns the issuer in ood_portal.yml.
func (n *webNode) issuer() string {
	n.t.Helper()
	_, rest, _ := strings.Cut(n.read("/etc/ood/config/ood_portal.yml"), `oidc_provider_metadata_url: "`)
	at, _, _ := strings.Cut(rest, "/.well-known/")
	return at
}

// signIn logs a user in and returns the user's token.
func (n *webNode) signIn(user string) string {
	n.t.Helper()
	r, err := n.web().PostForm(n.issuer()+"/protocol/openid-connect/token", url.Values{
		"grant_type": {"password"}, "username": {user}, "password": {"x"}, "client_id": {"ondemand"},
		"client_secret": {n.answers["oidc.client-secret"]},
	})
	if err != nil {
		n.t.Fatal(err)
	}
	defer r.Body.Close()
	var tokens struct {
		Access string `json:"access_token"`
	}
	if err := json.NewDecoder(r.Body).Decode(&tokens); err != nil || tokens.Access == "" {
		n.t.Fatalf("%s: %s, %v", user, r.Status, err)
	}
	return tokens.Access
}

// with returns a client for the remote cluster that authenticates with a token.
func (n *webNode) with(token string) kubernetes.Interface {
	config := rest.AnonymousClientConfig(shared.config(n.t, "remote"))
	config.BearerToken = token
	return clientOf(n.t, config)
}

// whoIs returns the user name that the remote API server derives from a token.
func (n *webNode) whoIs(token string) (string, error) {
	review, err := n.with(token).AuthenticationV1().SelfSubjectReviews().Create(
		n.t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{},
	)
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username, nil
}

// logs waits until the node's syslog contains words.
func (n *webNode) logs(words string) {
	n.t.Helper()
	eventually(n.t, happens, func() error {
		if log := n.read("/var/log/messages"); !strings.Contains(log, words) {
			return fmt.Errorf("no %q in:\n%s", words, log)
		}
		return nil
	})
}

func TestPortalAsItIsShipped(t *testing.T) {
	n := seedPortal(t, "")
	for _, name := range []string{
		"/opt/ood/VERSION", "/etc/ood/config/hook.env", "/etc/passwd", "/usr/local/bin/kubectl",
		"/opt/ood/hooks/k8s-bootstrap/k8s-bootstrap-ondemand.sh",
	} {
		if n.read(name) == "" {
			t.Errorf("there is no %s", name)
		}
	}
	if info, err := os.Stat(filepath.Join(n.root, "/etc/ood/config/hook.env")); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("hook.env: %v, %v", info, err)
	}
	if _, err := shared.client(t, "remote").CoreV1().Namespaces().Get(
		t.Context(), "ondemand", metav1.GetOptions{},
	); !apierrors.IsNotFound(err) {
		t.Errorf("something of Open OnDemand is in the cluster already: %v", err)
	}
	if err := os.WriteFile(filepath.Join(n.root, "etc/mine"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	shared.must(t, "seed ondemand")
	if n.read("/etc/mine") != "mine" {
		t.Error("a second seed began anew")
	}
	shared.must(t, "reset")
	if _, err := os.Stat(n.root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder outlives the reset: %v", err)
	}
}

func TestAUserOfThePortalIsOneOfTheCluster(t *testing.T) {
	n := seedPortal(t, "by-hand")
	token := n.signIn("alice")
	if who, err := n.whoIs(token); who != "alice" || err != nil {
		t.Errorf("she is %q, %v", who, err)
	}
	if who, err := n.whoIs(token[:len(token)-4] + "AAAA"); err == nil {
		t.Errorf("a token that nobody signed is %q", who)
	}
	n.bootstrapped("user-alice", "user-bob")
	if log := n.read("/var/log/messages"); strings.Contains(log, "ood_nginx_stage") {
		t.Errorf("hooks that succeed are logged:\n%s", log)
	}
	for namespace, allowed := range map[string]bool{"user-alice": true, "user-bob": false} {
		_, err := n.with(token).CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		if allowed != (err == nil) {
			t.Errorf("alice in %s: %v", namespace, err)
		}
	}
	policy, err := shared.client(t, "remote").NetworkingV1().NetworkPolicies("user-bob").Get(
		t.Context(), "deny-from-other-namespaces", metav1.GetOptions{},
	)
	if err != nil || policy.Spec.Ingress[0].From[1].IPBlock.CIDR != "172.30.0.0/16" {
		t.Errorf("%v, %v", policy, err)
	}
	space, err := shared.client(t, "remote").CoreV1().Namespaces().Get(t.Context(), "user-alice", metav1.GetOptions{})
	if err != nil || space.Labels["pod-security.kubernetes.io/enforce"] != "restricted" ||
		space.Annotations["openondemand.org/last-hook-execution"] == "" {
		t.Errorf("%v, %v", space, err)
	}
	// The hook runs again when what it reads has changed.
	hookEnv := filepath.Join(n.root, "etc/ood/config/hook.env")
	text := strings.Replace(n.read("/etc/ood/config/hook.env"), "172.30.0.0/16", "10.9.0.0/16", 1)
	if err := os.WriteFile(hookEnv, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, happens, func() error {
		policy, err := shared.client(t, "remote").NetworkingV1().NetworkPolicies("user-bob").Get(
			t.Context(), "deny-from-other-namespaces", metav1.GetOptions{},
		)
		if err == nil && policy.Spec.Ingress[0].From[1].IPBlock.CIDR != "10.9.0.0/16" {
			err = errors.New("the policy is the old one")
		}
		return err
	})
}

// asked returns Prometheus' response to a query through the API server.
func (n *webNode) asked() string {
	n.t.Helper()
	body, err := shared.client(n.t, "remote").CoreV1().RESTClient().Get().
		AbsPath(
			"/api/v1/namespaces/monitoring/services/prometheus:9090/proxy/api/v1/query",
		).Param("query", "count(kube_pod_container_info)").DoRaw(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	return string(body)
}

// login returns the HTTP status of the registry's response to the robot account's login.
func (n *webNode) login() int {
	n.t.Helper()
	ask, err := http.NewRequestWithContext(
		n.t.Context(), http.MethodGet, "https://"+n.answers["registry.host"]+"/token", nil,
	)
	if err != nil {
		n.t.Fatal(err)
	}
	ask.SetBasicAuth(n.answers["registry.user"], n.answers["registry.password"])
	r, err := n.web().Do(ask)
	if err != nil {
		n.t.Fatal(err)
	}
	r.Body.Close()
	return r.StatusCode
}

func TestWhatStandsBesideThePortal(t *testing.T) {
	n := seedPortal(t, "")
	if said := n.asked(); !strings.Contains(said, `"value":[`) {
		t.Errorf("Prometheus: %s", said)
	}
	if status := n.login(); status != http.StatusOK {
		t.Errorf("the registry: %d", status)
	}
	r, err := http.Get(n.answers["walltime.source"] + "/index.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var index bytes.Buffer
	if _, err := index.ReadFrom(r.Body); err != nil || !strings.Contains(index.String(), "job-pod-reaper-v0.14.0.tgz") ||
		!strings.Contains(index.String(), "k8-namespace-reaper-v0.11.0.tgz") {
		t.Errorf("charts: %s, %v", &index, err)
	}
}

func TestPortalHasEveryFault(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range shared.ask(t, "faults ondemand").Faults {
		seen[f.Name] = true
		t.Run(f.Name, func(t *testing.T) {
			look := portalShown[f.Name]
			if look == nil {
				t.Fatal("nothing looks at what it does")
			}
			look(t, seedPortal(t, f.Name))
		})
	}
	for name := range portalShown {
		if !seen[name] {
			t.Errorf("there is no fault %s", name)
		}
	}
}

// holds returns a check that a file on the node contains words.
func holds(name string, words ...string) func(*testing.T, *webNode) {
	return func(t *testing.T, n *webNode) {
		for _, w := range words {
			if text := n.read(name); !strings.Contains(text, w) {
				t.Errorf("%s has no %q:\n%s", name, w, text)
			}
		}
	}
}

// bootstrapped waits until the namespaces have the RoleBindings that the hook creates.
func (n *webNode) bootstrapped(names ...string) {
	n.t.Helper()
	for _, name := range names {
		eventually(n.t, happens, func() error {
			bindings, err := shared.client(n.t, "remote").RbacV1().RoleBindings(name).List(n.t.Context(), metav1.ListOptions{})
			if err == nil && len(bindings.Items) < 2 {
				err = fmt.Errorf("namespace %s has %d RoleBindings", name, len(bindings.Items))
			}
			return err
		})
	}
}

// fails returns a check that the syslog reports a failed login of alice with this message.
func fails(words string) func(*testing.T, *webNode) {
	return func(_ *testing.T, n *webNode) { n.logs("exited with 1 for user alice. stderr was '" + words) }
}

// reapsAll verifies that the reaper's ClusterRoleBinding exists, which allows it to delete in every namespace.
func reapsAll(t *testing.T, _ *webNode) {
	if _, err := shared.client(t, "remote").RbacV1().ClusterRoleBindings().Get(
		t.Context(), "job-pod-reaper", metav1.GetOptions{},
	); err != nil {
		t.Error(err)
	}
}

const (
	hookEnvFile = "/etc/ood/config/hook.env"
	clusterFile = "/etc/ood/config/clusters.d/kubernetes.yml"
)

// portalShown maps each fault to a check that the fault has its effect.
var portalShown = map[string]func(*testing.T, *webNode){
	"by-hand": func(_ *testing.T, n *webNode) { n.bootstrapped("user-bob") },
	"page": func(t *testing.T, n *webNode) {
		holds("/etc/ood/config/hooks.env", `NAMESPACE_PREFIX="user-"`)(t, n)
		holds(hookEnvFile, `CLIENT_SECRET="changeme"`)(t, n)
		holds(clusterFile, `type: "odic"`, `config_file: "~/.kube/config"`)(t, n)
		reapsAll(t, n)
		n.bootstrapped("alice") // with the prefix of hook.env, not that of hooks.env
		mayRenew(t, n, "/root/.kube/config", false)
	},
	"token-expired": fails("error: You must be logged in to the server (Unauthorized)"),
	"admin-kubeconfig": func(t *testing.T, n *webNode) {
		holds("/etc/ood/hooks/kubeconfig", "client-key-data")(t, n)
	},
	"ca-missing": fails("open /etc/ood/hooks/cluster-ca.crt: no such file or directory"),
	"hooks-env": func(t *testing.T, n *webNode) {
		holds(hookEnvFile, `CLIENT_ID="changeme"`)(t, n)
		holds("/etc/ood/config/hooks.env", `CLIENT_ID="ondemand"`)(t, n)
	},
	"hook-env-readable": func(t *testing.T, n *webNode) {
		if info, err := os.Stat(filepath.Join(n.root, hookEnvFile)); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%v, %v", info, err)
		}
	},
	"hook-env-comment":      fails("/etc/ood/config/hook.env: export: `#': not a valid identifier"),
	"hook-env-crlf":         func(_ *testing.T, n *webNode) { n.logs("exited with 1 for user alice") },
	"pod-security-policies": fails("/etc/ood/config/hook.env: UID: readonly variable"),
	"network-shut":          holds(hookEnvFile, `"127.0.0.1/32"`),
	"prefix-differs":        holds(hookEnvFile, `NAMESPACE_PREFIX="ood-"`),
	"token-endpoint":        holds(hookEnvFile, `/protocol/openid-connect/token"`),
	"hook-not-executable": func(_ *testing.T, n *webNode) {
		n.logs(
			"/etc/ood/hooks/k8s-pre-hook.sh threw exception 'Permission denied - /etc/ood/hooks/k8s-pre-hook.sh' for alice",
		)
	},
	"no-pre-hook": holds("/etc/ood/config/ood_portal.yml", "\n# pun_pre_hook_root_cmd:"),
	"auth-typo":   holds(clusterFile, `type: "odic"`),
	"tilde":       holds(clusterFile, `config_file: "~/.kube/config"`),
	"no-endpoint": func(t *testing.T, n *webNode) {
		if text := n.read(clusterFile); strings.Contains(text, "endpoint") || !strings.Contains(text, "auth:") {
			t.Errorf("%s", text)
		}
	},
	"kubectl-missing": holds(clusterFile, `bin: "/usr/bin/kubectl"`),
	"no-audience": func(t *testing.T, n *webNode) {
		if who, err := n.whoIs(n.signIn("alice")); !apierrors.IsUnauthorized(err) {
			t.Errorf("she is %q, %v", who, err)
		}
	},
	"username-prefixed": func(t *testing.T, n *webNode) {
		if who, err := n.whoIs(n.signIn("alice")); who != n.issuer()+"#alice" {
			t.Errorf("she is %q, %v", who, err)
		}
		pods, err := shared.client(t, "remote").CoreV1().Pods("kube-system").List(
			t.Context(), metav1.ListOptions{LabelSelector: "component=kube-apiserver"},
		)
		if err != nil || len(pods.Items) != 1 ||
			strings.Contains(strings.Join(pods.Items[0].Spec.Containers[0].Command, " "), "username-prefix") {
			t.Errorf("what the API server shows of itself: %v, %v", pods, err)
		}
	},
	"prometheus-empty": func(t *testing.T, n *webNode) {
		if said := n.asked(); !strings.Contains(said, `"result":[]`) {
			t.Errorf("it says %s", said)
		}
	},
	"registry-refuses": func(t *testing.T, n *webNode) {
		if status := n.login(); status != http.StatusUnauthorized {
			t.Errorf("it says %d", status)
		}
	},
	"issuer-down": func(t *testing.T, n *webNode) {
		if r, err := n.web().Get(n.issuer() + "/.well-known/openid-configuration"); err == nil {
			r.Body.Close()
			t.Errorf("it says %s", r.Status)
		}
	},
	"reaper-everywhere": reapsAll,
	"role-narrowed": func(t *testing.T, n *webNode) {
		role, err := shared.client(t, "remote").RbacV1().ClusterRoles().Get(t.Context(), "ondemand", metav1.GetOptions{})
		if err != nil || strings.Contains(fmt.Sprint(role.Rules), "rolebindings") {
			t.Errorf("%v, %v", role, err)
		}
	},
	"renewal-forbidden": func(t *testing.T, n *webNode) { mayRenew(t, n, "/etc/ood/hooks/kubeconfig", false) },
	"namespace-unbound": func(t *testing.T, n *webNode) {
		bindings, err := shared.client(t, "remote").RbacV1().RoleBindings("user-older").List(
			t.Context(), metav1.ListOptions{},
		)
		if err != nil || len(bindings.Items) != 0 {
			t.Errorf("%v, %v", bindings, err)
		}
	},
}

// mayRenew verifies that the kubeconfig exists. If want is false, it also verifies that no RoleBinding in the namespace
// ondemand has root's ServiceAccount as a subject.
func mayRenew(t *testing.T, n *webNode, kubeconfig string, want bool) {
	t.Helper()
	if n.read(kubeconfig) == "" {
		t.Errorf("there is no %s", kubeconfig)
	}
	roles, err := shared.client(t, "remote").RbacV1().RoleBindings("ondemand").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range roles.Items {
		for _, s := range b.Subjects {
			if s.Kind == rbacv1.ServiceAccountKind && s.Name == "ondemand" && !want {
				t.Errorf("RoleBinding %s lets it", b.Name)
			}
		}
	}
}
