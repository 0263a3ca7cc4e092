package scenario

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"carrick/cluster/sandbox/standin/renkuapi"
	"carrick/cluster/sandbox/world"
)

// Names from the published page.
const (
	pageSessions = "renku-user-sessions"
	pageSecret   = "cross-cluster-sa-secret"
	pageKey      = "remote-cluster.yaml"
	restartedAt  = "kubectl.kubernetes.io/restartedAt"
)

// pageRestarts lists the services that the page restarts in its last step. The page should also restart data-tasks, but
// does not.
var pageRestarts = []string{"data-service", "k8s-watcher", "secrets-storage"}

// page fakes an admin who follows the published page literally. After the YAML is applied, it writes the kubeconfig to
// the local cluster, registers the cluster with Renku and restarts the services.
type page struct {
	sides Sides
	api   *renkuapi.Server
}

func (p *page) follow(ctx context.Context) error {
	here, err := kubernetes.NewForConfig(p.sides[local].Config)
	if err != nil {
		return err
	}
	there, err := kubernetes.NewForConfig(p.sides[remote].Config)
	if err != nil {
		return err
	}
	kubeconfig, err := p.kubeconfig(ctx, there)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(
		map[string]any{"data": map[string]any{pageKey: base64.StdEncoding.EncodeToString(kubeconfig)}},
	)
	if err != nil {
		return err
	}
	secrets := here.CoreV1().Secrets(renkuNamespace)
	if _, err := secrets.Patch(
		ctx, "renku-remote-clusters", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl"},
	); err != nil {
		return err
	}
	id, err := p.register(ctx)
	if err != nil {
		return err
	}
	if err := restart(ctx, here); err != nil || id == "" {
		return err
	}
	return p.pool(ctx, id)
}

// kubeconfig inserts the token Secret's data into the page's example kubeconfig. The example has no current context.
func (p *page) kubeconfig(ctx context.Context, there kubernetes.Interface) ([]byte, error) {
	var secret *corev1.Secret
	err := world.Until(ctx, "the token of "+pageSecret, func() (bool, error) {
		var err error
		secret, err = there.CoreV1().Secrets(pageSessions).Get(ctx, pageSecret, metav1.GetOptions{})
		return err == nil && len(secret.Data[corev1.ServiceAccountTokenKey]) > 0, err
	})
	if err != nil {
		return nil, err
	}
	const name = "remote-cluster-A"
	return json.MarshalIndent(map[string]any{ // JSON is valid YAML
		"apiVersion": "v1", "kind": "Config",
		"clusters": []any{map[string]any{"name": name, "cluster": map[string]any{
			"certificate-authority-data": secret.Data[corev1.ServiceAccountRootCAKey],
			"server":                     p.sides[remote].Config.Host,
		}}},
		"contexts": []any{map[string]any{"name": name, "context": map[string]any{
			"cluster": name, "user": name, "namespace": string(secret.Data[corev1.ServiceAccountNamespaceKey]),
		}}},
		"users": []any{map[string]any{"name": name, "user": map[string]any{
			"token": string(secret.Data[corev1.ServiceAccountTokenKey]),
		}}},
	}, "", "  ")
}

// register posts the page's payload to Renku and returns the cluster's ID. It returns "" if a cluster with the same
// name exists.
func (p *page) register(ctx context.Context) (id string, err error) {
	var made struct{ ID string }
	status, err := p.admin(ctx, http.MethodPost, "/clusters", pageCluster, &made)
	switch {
	case status == http.StatusConflict:
		return "", nil
	case err == nil && status != http.StatusCreated:
		return "", fmt.Errorf("register the cluster: Renku returned status %d", status)
	}
	return made.ID, err
}

// pool tries to create the page's resource pool. Renku returns 404 both before and after the restart, because it has
// not loaded the kubeconfig.
func (p *page) pool(ctx context.Context, id string) error {
	status, err := p.admin(
		ctx, http.MethodPost, "/resource_pools", strings.ReplaceAll(pagePool, "${REMOTE_CLUSTER_ULID}", id), nil,
	)
	if status != http.StatusNotFound {
		return fmt.Errorf("the published guide's resource pool: Renku returned status %d, not 404: %w", status, err)
	}
	return nil
}

// frame follows the page's section on security, in which the last payload replaces the first one. It sends the last
// payload as valid JSON. Renku rejects the last payload in a PUT and in a PATCH (422, because the row no longer has
// the TLS flag from the first payload). Therefore frame deletes the cluster and creates it again.
func (p *page) frame(ctx context.Context) error {
	var rows []struct {
		ID, Name    string
		Annotations map[string]any `json:"session_ingress_annotations"`
	}
	if _, err := p.admin(ctx, http.MethodGet, "/clusters", "", &rows); err != nil {
		return err
	}
	for _, row := range rows {
		if row.Name != "Remote Cluster" || len(row.Annotations) > 0 {
			continue
		}
		annotations := strings.ReplaceAll(pageAnnotations, "<local hostname>", p.api.Domain())
		payload := strings.Replace(
			pageCluster, `"session_ingress_annotations": {}`, `"session_ingress_annotations": `+annotations, 1,
		)
		if _, err := p.admin(ctx, http.MethodDelete, "/clusters/"+row.ID, "", nil); err != nil {
			return err
		}
		if _, err := p.admin(ctx, http.MethodPost, "/clusters", payload, nil); err != nil {
			return err
		}
	}
	return nil
}

// admin sends a request to Renku's API as a Renku admin.
func (p *page) admin(ctx context.Context, method, path, body string, out any) (int, error) {
	client, err := p.client()
	if err != nil {
		return 0, err
	}
	defer client.CloseIdleConnections()
	base := "https://" + p.api.Domain()
	var granted struct {
		AccessToken string `json:"access_token"`
	}
	if _, err := call(
		ctx, client, http.MethodPost, base+"/stand-in/token?roles=renku-admin", "", "", &granted,
	); err != nil {
		return 0, err
	}
	return call(ctx, client, method, base+"/api/data"+path, granted.AccessToken, body, out)
}

func (p *page) client() (*http.Client, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(p.api.CA()) {
		return nil, errors.New("the CA of Renku contains no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	return &http.Client{Transport: transport}, nil
}

// call sends a request with a JSON body and decodes the response into out. It returns the status code, and an error
// unless the status code is 2xx.
func call(ctx context.Context, client *http.Client, method, url, token, body string, out any) (int, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return answer.StatusCode, err
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return answer.StatusCode, fmt.Errorf("%s %s: %s: %.300s", method, request.URL.Path, answer.Status, data)
	}
	if out == nil {
		return answer.StatusCode, nil
	}
	return answer.StatusCode, json.Unmarshal(data, out)
}

// restart restarts the services in pageRestarts once, as kubectl rollout restart does. It waits until all their pods
// are new.
func restart(ctx context.Context, here kubernetes.Interface) error {
	deployments := here.AppsV1().Deployments(renkuNamespace)
	for _, service := range pageRestarts {
		name := renkuRelease + "-" + service
		now, err := deployments.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if now.Spec.Template.Annotations[restartedAt] != "" {
			continue
		}
		patch := fmt.Sprintf(
			`{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, restartedAt, time.Now().Format(time.RFC3339),
		)
		_, err = deployments.Patch(
			ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-rollout"},
		)
		if err != nil {
			return err
		}
		err = world.Until(ctx, name+" to be restarted", func() (bool, error) {
			now, err := deployments.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			s := now.Status
			return s.ObservedGeneration >= now.Generation && s.UpdatedReplicas == *now.Spec.Replicas &&
				s.Replicas == *now.Spec.Replicas && s.AvailableReplicas == *now.Spec.Replicas, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
