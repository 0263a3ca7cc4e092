package certmanager

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// injectFrom is the annotation of a webhook configuration with the name of a Certificate. The CA of the Certificate
// becomes the caBundle (pkg/controller/cainjector/sources.go).
const injectFrom = "cert-manager.io/inject-ca-from"

// inject sets the caBundle of annotated webhook configurations.
func (p *Player) inject(ctx context.Context) error {
	runs, err := p.client.AppsV1().Deployments(Namespace).Get(ctx, "cert-manager-cainjector", metav1.GetOptions{})
	if err != nil || runs.Status.AvailableReplicas == 0 {
		return nil // not every scenario installs cainjector
	}
	all, err := p.client.AdmissionregistrationV1().MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var faults []error
	for _, config := range all.Items {
		ca := p.named(ctx, config.Annotations[injectFrom])
		if len(ca) == 0 {
			continue
		}
		type patch struct {
			Op    string `json:"op"`
			Path  string `json:"path"`
			Value string `json:"value"`
		}
		var patches []patch
		for i, hook := range config.Webhooks {
			if !bytes.Equal(hook.ClientConfig.CABundle, ca) {
				patches = append(
					patches,
					patch{"add", "/webhooks/" + strconv.Itoa(i) + "/clientConfig/caBundle", base64.StdEncoding.EncodeToString(ca)},
				)
			}
		}
		if len(patches) == 0 {
			continue
		}
		data, err := json.Marshal(patches)
		if err == nil {
			_, err = p.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Patch(
				ctx, config.Name, types.JSONPatchType, data, metav1.PatchOptions{FieldManager: "cert-manager-cainjector"},
			)
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// named returns the CA of the Certificate ref (NAMESPACE/NAME), or nil if the Certificate does not exist.
func (p *Player) named(ctx context.Context, ref string) []byte {
	namespace, name, ok := strings.Cut(ref, "/")
	if !ok {
		return nil
	}
	o, err := p.dynamic.Resource(certificates).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	held, _, _ := unstructured.NestedString(o.Object, "spec", "secretName")
	secret, err := p.client.CoreV1().Secrets(namespace).Get(ctx, held, metav1.GetOptions{})
	if err != nil || secret.Annotations[nameAnnotation] != name { // upstream also rejects another Certificate's Secret
		return nil
	}
	return secret.Data["ca.crt"]
}
