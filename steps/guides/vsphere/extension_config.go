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

// noClass is the class that the published program sets if none is configured: the quotes are
// part of it.
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
					"claim %s/%s has class %s, because the program did not find its ConfigMap", c.Namespace, c.Name, clean.Text(*name),
				),
				e.ApplyStep("extension")+"\n"+e.Kubectl()+" -n "+c.Namespace+" delete persistentvolumeclaim "+steps.Quoted(c.Name)+
					"    # it contains no data; its owner has to recreate it",
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
		fmt.Sprintf("Deployment %s/%s runs neither carrick's program nor the published one", s.Namespace, s.Name), remade(e),
	)
}

func carrickConfig(e steps.Env, s *extensionState) steps.Result {
	want := slices.Sorted(slices.Values(e.Answers.List("mutation.replaces")))
	have := slices.Sorted(slices.Values(s.from))
	switch {
	case s.class != sharedClassName(e):
		return steps.Failed(
			fmt.Sprintf("the extension sets class %q, but storage.class is %s", clean.Text(s.class), sharedClassName(e)),
			remade(e),
		)
	case !slices.Equal(want, have):
		return steps.Failed(
			fmt.Sprintf(
				"the extension replaces classes [%s], but mutation.replaces is [%s]", clean.Text(check.Some(have)),
				check.Some(want),
			),
			remade(e),
		)
	}
	return steps.Passed("%s, in place of no class and of %s", s.class, check.Some(have))
}

// extensionProperties returns the ConfigMap of the published program, and the class in it, or
// "" if it names none.
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

// propertyOf returns the class in a properties file. If several lines set it, the last one counts.
func propertyOf(text string) string {
	out := ""
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, "="); ok && strings.TrimSpace(key) == configKey {
			out = strings.TrimSpace(value)
		}
	}
	return out
}

// setProperty returns the command that writes the class into the ConfigMap and restarts the
// program. The published README's command uses the ConfigMap's name as a namespace.
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
				"ConfigMap %s/%s has class %q, but storage.class is %s", m.Namespace, m.Name, clean.Text(has),
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
			old = "its class changed on " + w.Changed.UTC().Format(time.DateTime)
		case began.Before(written):
			old = "its certificate changed on " + written.UTC().Format(time.DateTime) +
				", and it serves the old one until that expires"
		default:
			continue
		}
		return steps.Failed(
			fmt.Sprintf(
				"pod %s has run since %s, but %s. It reads that only at startup", p.Name, began.UTC().Format(time.DateTime), old,
			),
			e.Kubectl()+" -n "+m.Namespace+" rollout restart deployment "+extensionName,
		)
	}
	return steps.Passed("%s, and its pods have started since that was set", has)
}

// beganAt returns when a pod's program started, which is when it reads its files, or zero if it
// has not.
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

// certificateWritten returns when the extension's certificate was written into its Secret, or
// zero if the Secret does not exist, which another check reports. NotBefore cannot be used,
// because carrick and others backdate it.
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
		"sed -i 's/%s=.*/%s=%s/' additional/resources.yaml    # replaces any class", configKey, configKey,
		sharedClassName(e),
	)
	if live != sharedClassName(e) {
		return steps.Failed(
			fmt.Sprintf(
				"ConfigMap %s/%s has class %q, but storage.class is %s. The published sed replaces only nfs-client, which "+
					"another class has already replaced",
				m.Namespace, m.Name, clean.Text(live), sharedClassName(e),
			),
			setProperty(e)+"\n"+file,
		)
	}
	applied, ok := fromFile(m)
	if ok && applied != live {
		return steps.Warned(
			fmt.Sprintf(
				"the file from which ConfigMap %s/%s was applied has class %q, which the next kubectl apply restores",
				m.Namespace, m.Name, clean.Text(applied),
			),
			file,
		)
	}
	return steps.Passed("%s, in ConfigMap %s/%s", live, m.Namespace, m.Name)
}

// fromFile returns the class in the file that was last applied with kubectl, or false if there is
// none.
func fromFile(m *corev1.ConfigMap) (string, bool) {
	var file corev1.ConfigMap
	text, ok := m.Annotations[corev1.LastAppliedConfigAnnotation]
	if !ok || json.Unmarshal([]byte(text), &file) != nil {
		return "", false
	}
	return propertyOf(file.Data[configFile]), true
}
