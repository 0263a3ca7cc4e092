package vsphere

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

// noClass is the StorageClass that the published program sets if none is configured. The quotes are part of the name.
const noClass = `"to-be-overridden"`

func extensionConfig(ctx context.Context, e steps.Env) steps.Result {
	claims, err := check.List[corev1.PersistentVolumeClaim](ctx, e.Cluster, check.VolumeClaims, "", cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	for _, c := range claims {
		if name := c.Spec.StorageClassName; name != nil && strings.Contains(*name, strings.Trim(noClass, `"`)) {
			return steps.Failed(
				fmt.Sprintf(
					"claim %s/%s has StorageClass %s, because the published program did not find its ConfigMap", c.Namespace, c.Name,
					clean.Text(*name),
				),
				e.ApplyStep("extension")+"\n"+e.Kubectl()+" -n "+c.Namespace+" delete persistentvolumeclaim "+steps.Quoted(c.Name)+
					"    # the claim contains no data; its owner has to recreate it",
			)
		}
	}
	s, err := theExtension(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	switch s.program {
	case byCarrick:
		return carrickConfig(e, s)
	case byUpstream:
		return upstreamConfig(ctx, e)
	}
	return steps.Failed(
		fmt.Sprintf("Deployment %s/%s runs neither carrick nor the published program", s.Namespace, s.Name), takeOverFix(e),
	)
}

func carrickConfig(e steps.Env, s *extensionState) steps.Result {
	want := slices.Sorted(slices.Values(e.Answers.List("mutation.replaces")))
	have := slices.Sorted(slices.Values(s.from))
	switch {
	case s.class != sharedClassName(e):
		return steps.Failed(
			fmt.Sprintf("the extension sets StorageClass %q, but storage.class is %s", clean.Text(s.class), sharedClassName(e)),
			takeOverFix(e),
		)
	case !slices.Equal(want, have):
		return steps.Failed(
			fmt.Sprintf(
				"the extension replaces StorageClasses [%s], but mutation.replaces is [%s]", clean.Text(check.Some(have)),
				check.Some(want),
			),
			takeOverFix(e),
		)
	}
	return steps.Passed("%s, for claims without a StorageClass or with %s", s.class, check.Some(have))
}

// extensionProperties returns the published program's ConfigMap and the StorageClass in it. The StorageClass is "" if
// the ConfigMap sets none.
func extensionProperties(ctx context.Context, e steps.Env) (*corev1.ConfigMap, string, error) {
	m, err := check.Get[corev1.ConfigMap](ctx, e.Cluster, check.ConfigMaps, extensionSpace(e), configMapName)
	if apierrors.IsNotFound(err) {
		return nil, "", steps.Absent("ConfigMap %s/%s does not exist", extensionSpace(e), configMapName)
	}
	if err != nil {
		return nil, "", err
	}
	return m, propertyOf(m.Data[configFile]), nil
}

// propertyOf returns the StorageClass that a properties file sets, or "" if it sets none. If several lines set a
// StorageClass, the last line applies.
func propertyOf(text string) string {
	out := ""
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, "="); ok && strings.TrimSpace(key) == configKey {
			out = strings.TrimSpace(value)
		}
	}
	return out
}

// setProperty returns the command that writes the StorageClass into the ConfigMap and restarts the
// program. The command in the published README is wrong, because it uses the ConfigMap's name as a
// namespace.
func setProperty(e steps.Env) string {
	in := e.Kubectl() + " -n " + extensionSpace(e)
	patch := fmt.Sprintf(`{"data":{%q:"%s=%s"}}`, configFile, configKey, sharedClassName(e))
	return fmt.Sprintf(
		"%s patch configmap %s --type merge -p '%s' && %s rollout restart deployment %s", in, configMapName, patch, in,
		extensionName,
	)
}

func upstreamConfig(ctx context.Context, e steps.Env) steps.Result {
	m, has, err := extensionProperties(ctx, e)
	if err != nil {
		return check.AbsentFails(err, e.ApplyStep("extension"))
	}
	if has != sharedClassName(e) {
		return steps.Failed(
			fmt.Sprintf(
				"ConfigMap %s/%s sets StorageClass %q, but storage.class is %s", m.Namespace, m.Name, clean.Text(has),
				sharedClassName(e),
			),
			setProperty(e),
		)
	}
	w, err := check.KeyWritten(ctx, e.Cluster, m.Namespace, m.Name, configFile)
	if err != nil {
		return steps.Errored(err)
	}
	pods, err := extensionPods(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	written, err := certificateWritten(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	for _, p := range pods {
		began := beganAt(p)
		if began.IsZero() {
			continue
		}
		old := ""
		switch {
		case began.Before(w.Changed):
			old = "the StorageClass changed on " + w.Changed.UTC().Format(time.DateTime)
		case began.Before(written):
			old = "the certificate changed on " + written.UTC().Format(time.DateTime) +
				", and the pod serves the old certificate until that expires"
		default:
			continue
		}
		return steps.Failed(
			fmt.Sprintf(
				"pod %s has run since %s, but %s. The pod reads its files only at startup", p.Name,
				began.UTC().Format(time.DateTime), old,
			),
			e.Kubectl()+" -n "+m.Namespace+" rollout restart deployment "+extensionName,
		)
	}
	return steps.Passed("%s, and the pods have started since the last change", has)
}

// beganAt returns when the program in p started and read its files. This is the start of the first running container,
// or else of the pod. It returns the zero time if the pod has not started.
func beganAt(p *corev1.Pod) time.Time {
	for _, c := range p.Status.ContainerStatuses {
		if r := c.State.Running; r != nil {
			return r.StartedAt.Time
		}
	}
	if p.Status.StartTime == nil {
		return time.Time{}
	}
	return p.Status.StartTime.Time
}

// certificateWritten returns when the extension's certificate was written into its Secret. It returns the zero time if
// the Secret does not exist, which check cert-secret reports. NotBefore of the certificate is unsuitable, because
// carrick and other signers backdate it.
func certificateWritten(ctx context.Context, e steps.Env) (time.Time, error) {
	byName := cluster.Selector{Fields: "metadata.name=" + tlsSecret}
	found, err := e.Cluster.Find(ctx, check.Secrets, extensionSpace(e), byName)
	if err != nil || len(found) == 0 {
		return time.Time{}, err
	}
	first := check.KeySince(found[0].ManagedFields, "tls.crt")
	if first.IsZero() {
		return found[0].CreationTimestamp.Time, nil
	}
	return first, nil
}

func pageSed(ctx context.Context, e steps.Env) steps.Result {
	m, live, err := extensionProperties(ctx, e)
	if steps.IsAbsent(err) {
		return steps.Passed("%s: the published file was not applied", err)
	}
	if err != nil {
		return steps.Errored(err)
	}
	file := fmt.Sprintf(
		"sed -i 's/%s=.*/%s=%s/' additional/resources.yaml    # replaces any StorageClass", configKey, configKey,
		sharedClassName(e),
	)
	if live != sharedClassName(e) {
		return steps.Failed(
			fmt.Sprintf(
				"ConfigMap %s/%s sets StorageClass %q, but storage.class is %s. The published sed command replaces only "+
					"nfs-client, which the file no longer contains",
				m.Namespace, m.Name, clean.Text(live), sharedClassName(e),
			),
			setProperty(e)+"\n"+file,
		)
	}
	applied, ok := fromFile(m)
	if ok && applied != live {
		return steps.Warned(
			fmt.Sprintf(
				"the file from which ConfigMap %s/%s was applied sets StorageClass %q, which the next kubectl apply restores",
				m.Namespace, m.Name, clean.Text(applied),
			),
			file,
		)
	}
	return steps.Passed("%s, in ConfigMap %s/%s", live, m.Namespace, m.Name)
}

// fromFile returns the StorageClass in the file from which m was last applied with kubectl. It returns false if m was
// not applied with kubectl.
func fromFile(m *corev1.ConfigMap) (string, bool) {
	var file corev1.ConfigMap
	text, ok := m.Annotations[corev1.LastAppliedConfigAnnotation]
	if !ok || json.Unmarshal([]byte(text), &file) != nil {
		return "", false
	}
	return propertyOf(file.Data[configFile]), true
}
