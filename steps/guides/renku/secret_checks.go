package renku

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/bearer"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/masked"
	"carrick/steps"
	"carrick/steps/check"
)

const valuesSource = "SwissDataScienceCenter/renku: helm-chart/renku/values.yaml " +
	"(dataService.remoteClustersKubeconfigSecretName)"

func secretChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "kubeconfig-stored", Title: "The kubeconfigs Secret has this cluster's key", On: steps.Local,
			FixedBy: "secret", Needs: []string{"renku-namespace"},
			Why:        "Renku finds the kubeconfig by the cluster's config_name, which must be the key.",
			References: []string{page, kubeconfigSource},
			Run:        kubeconfigStored,
		},
		{
			Name: "stored-kubeconfig", Title: "Renku's services can use the stored kubeconfig",
			On: steps.Local, FixedBy: "secret", Needs: []string{"kubeconfig-stored"},
			Why: "If it is unusable, Renku ignores the cluster and logs one warning; the published guide's example has no " +
				"current-context.",
			References: []string{kubeconfigSource, "kr8s-org/kr8s issue 737"},
			Run:        storedIsGood,
		},
		{
			Name: "stored-server-tls", Title: "The server's certificate verifies against the stored CA", On: steps.Local,
			From: "this machine", Needs: []string{"stored-kubeconfig"},
			Why:        "Renku trusts only that CA, so a changed address or certificate breaks the connection.",
			References: []string{kubeconfigSource},
			Run: func(ctx context.Context, e steps.Env) steps.Result {
				k, err := check.Kubeconfig(e, "stored-kubeconfig")
				if err != nil {
					return kubeconfigUnread(err)
				}
				return judgeTLS(ctx, k)
			},
		},
		{
			Name: "stored-is-tested", Title: "The stored kubeconfig is the one that was tested", On: steps.Local,
			FixedBy: "secret", Needs: []string{"stored-kubeconfig", "peer/credential-accepted"},
			Why: "Another kubeconfig may be outdated or grant more than Renku needs.",
			Run: storedIsProved,
		},
		{
			Name: "kubeconfigs-value", Title: "Renku's Helm values name that Secret", On: steps.Local,
			Needs: []string{"renku-namespace"},
			Why: "Without it no service mounts the Secret. Renku's admin sets it after the Secret exists, or new pods " +
				"stay in ContainerCreating.",
			References: []string{page, valuesSource},
			Run:        valueNamesSecret,
		},
		{
			Name: "kubeconfigs-mounted", Title: "The four services mount that Secret", On: steps.Local,
			Needs: []string{"kubeconfigs-value"},
			Why: "data-service, k8s-watcher, data-tasks and secrets-storage all read kubeconfigs; the published guide names " +
				"only three, in two different lists.",
			References: []string{"SwissDataScienceCenter/renku: helm-chart/renku/templates (data-service/deployment*.yaml, " +
				"secrets-storage/deployment.yaml)"},
			Run: mountedEverywhere,
		},
	}
}

// registeredKubeconfig returns the value under this link's key of the kubeconfigs Secret.
func registeredKubeconfig(ctx context.Context, e steps.Env) (any, error) {
	ns, name := secretWhere(e)
	key := e.Answers.Text("cluster.config-name")
	s, err := e.Cluster.Secret(ctx, ns, name, key)
	if apierrors.IsNotFound(err) {
		return nil, steps.Absent("Secret %s/%s does not exist yet", ns, name)
	}
	if err != nil {
		return nil, err
	}
	if _, ok := s.Keys[key]; !ok {
		return nil, steps.Absent("Secret %s/%s has no key %s yet", ns, name, key)
	}
	return s.Data[key], nil
}

func kubeconfigStored(ctx context.Context, e steps.Env) steps.Result {
	ns, name := secretWhere(e)
	key := e.Answers.Text("cluster.config-name")
	s, err := e.Cluster.Secret(ctx, ns, name, key)
	if err != nil {
		return check.Missing(err, "Secret "+ns+"/"+name, "")
	}
	var others []string
	for k := range s.Keys {
		if k != key {
			others = append(others, k)
		}
	}
	slices.Sort(others)
	fixed, err := immutableSecret(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	beside := ""
	if len(others) > 0 {
		beside = "; other keys: " + strings.Join(others, ", ")
	}
	size, has := s.Keys[key]
	switch missing := fmt.Sprintf("Secret %s/%s has no value under key %s%s", ns, name, key, beside); {
	case fixed && (!has || size == 0):
		return steps.Failed(
			missing+", and it is immutable", recreateSecret(ctx, e)+" && "+e.ApplyStep("secret"),
		).WithoutAction()
	case !has || size == 0:
		return steps.Undone(missing)
	case fixed:
		const found = "Secret %s/%s is immutable: carrick can neither change nor remove key %s%s"
		return steps.Warned(fmt.Sprintf(found, ns, name, key, beside), recreateSecret(ctx, e)+" && "+e.ApplyStep("secret")).
			WithoutAction()
	}
	return steps.Passed("Secret %s/%s, key %s%s", ns, name, key, beside)
}

func storedIsGood(ctx context.Context, e steps.Env) steps.Result {
	k, err := check.Kubeconfig(e, "stored-kubeconfig")
	var broken kubeconfig.Error
	if errors.As(err, &broken) {
		return steps.Failed(check.Details(broken.Problems), storedFix(ctx, e))
	}
	if err != nil {
		return steps.Errored(err)
	}
	if k.Namespace != sessionsNamespace(e) {
		return steps.Failed(
			fmt.Sprintf("the stored kubeconfig's namespace is %q, not %s", k.Namespace, sessionsNamespace(e)), storedFix(ctx, e),
		)
	}
	address := judgeAddress(k, e.Own)
	if !address.Status.Holds() {
		return address
	}
	if t, err := bearer.Parse(k.Token); err == nil && !t.Expires.IsZero() {
		r := steps.Failed(
			"the token expires on "+t.Expires.Format(time.DateTime)+": Renku then loses the cluster", rebuild,
		)
		r.Again = t.Expires
		return r
	}
	if address.Status != steps.Pass { // a private address is a warning, reported only if nothing worse is found
		return address
	}
	return steps.Passed("context %s, namespace %s, server %s", k.Name, k.Namespace, k.Server)
}

// storedIsProved compares the stored kubeconfig with the one that the step kubeconfig built and
// tested, and reveals neither.
func storedIsProved(ctx context.Context, e steps.Env) steps.Result {
	proved, err := e.Peer.Masked("kubeconfig")
	if err != nil {
		return steps.Errored(err)
	}
	stored, err := e.Own.Masked("stored-kubeconfig")
	if err != nil {
		return steps.Errored(err)
	}
	if stored == proved {
		return steps.Passed("both have hash %s", stored.Hash())
	}
	a, errA := kubeconfig.Parse([]byte(stored.Reveal()))
	b, errB := kubeconfig.Parse([]byte(proved.Reveal()))
	if err := errors.Join(errA, errB); err != nil {
		return kubeconfigUnread(err)
	}
	if normalKubeconfig(a) == normalKubeconfig(b) {
		return steps.Passed("only the formatting differs")
	}
	return steps.Failed("a different kubeconfig is stored, with "+strings.Join(differing(a, b), ", "), storedFix(ctx, e))
}

// differing returns the differences between two kubeconfigs and reveals no secret of either.
func differing(a, b kubeconfig.Config) []string {
	var out []string
	for _, part := range []struct {
		what string
		same bool
	}{
		{"server " + a.Server, a.Server == b.Server},
		{"namespace " + a.Namespace, a.Namespace == b.Namespace},
		{"a different CA", bytes.Equal(bytes.TrimSpace(a.CA), bytes.TrimSpace(b.CA))},
		{"a different token", a.Token == b.Token},
		{"a different client certificate", bytes.Equal(a.ClientCert, b.ClientCert) && a.ClientKey == b.ClientKey},
		{"a different tls-server-name or proxy-url", a.TLSServerName == b.TLSServerName && a.ProxyURL == b.ProxyURL},
	} {
		if !part.same {
			out = append(out, part.what)
		}
	}
	return out
}

// normalKubeconfig returns a kubeconfig in a uniform format, for comparison.
func normalKubeconfig(k kubeconfig.Config) masked.Value {
	k.Name, k.CA = "", bytes.TrimSpace(k.CA)
	return k.Bytes()
}

// renkuUpgrade returns the helm upgrade command that sets values of Renku's release. extra are
// further arguments. It returns "" if there is no Helm release to upgrade.
func renkuUpgrade(e steps.Env, extra string) string {
	r, err := e.Own.Map("release")
	if err != nil {
		return ""
	}
	return upgradeLine(textOf(r, "name"), textOf(r, "version"), renkuNamespace(e)+helmSide(e), extra)
}

// upgradeLine returns a helm upgrade command. It quotes strings from the release, because users
// paste the command into a shell.
func upgradeLine(name, version, where, extra string) string {
	return fmt.Sprintf(
		"helm upgrade %s renku/renku -n %s --version %s --reuse-values %s", steps.Quoted(name), where, steps.Quoted(version),
		extra,
	)
}

// helmSide returns Helm's flags for the kubeconfig and the context of a side.
func helmSide(e steps.Env) string {
	return strings.TrimPrefix(e.Helm(), "helm")
}

// setValue returns the fix that makes Renku's services mount the Secret.
func setValue(e steps.Env) string {
	_, name := secretWhere(e)
	after := "    # once Secret " + name + " exists, not before: without it new pods stay in ContainerCreating"
	if line := renkuUpgrade(e, "--set "+steps.Quoted(kubeconfigsPath+"="+name)); line != "" {
		return line + after
	}
	return "set " + kubeconfigsPath + ": " + name + " in Renku's values and roll it out" + after
}

func valueNamesSecret(_ context.Context, e steps.Env) steps.Result {
	_, name := secretWhere(e)
	value, err := e.Own.Text("kubeconfigs-value")
	absent := (*steps.AbsentError)(nil)
	switch {
	case err == nil && value == name:
		return steps.Passed("%s", value)
	case err == nil:
		return steps.Failed(
			"Renku's values name Secret "+value+", not "+name, "answer secret.name with "+value+", or: "+setValue(e),
		)
	case !errors.As(err, &absent):
		return steps.Errored(err)
	}
	if _, err := e.Own.Value("release"); err != nil { // without a release, read the running Deployments
		mounted, err := e.Own.Text("kubeconfigs-secret")
		switch {
		case err == nil && mounted == name:
			return steps.Passed("no Helm release is readable, but the data service mounts %s", mounted)
		case err == nil:
			return steps.Failed(
				"the data service mounts Secret "+mounted+", not "+name, "answer secret.name with "+mounted+", or: "+setValue(e),
			)
		case !errors.As(err, &absent):
			return steps.Errored(err)
		}
	}
	return steps.Waits(
		time.Time{}, "%s is not set: Renku's admin sets it to %s after that Secret exists", kubeconfigsPath, name,
	).Or(setValue(e))
}

func mountedEverywhere(ctx context.Context, e steps.Env) steps.Result {
	_, name := secretWhere(e)
	found, err := servicesOf(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	var bad, good []string
	for _, s := range found {
		switch mounted := mountedKubeconfigs(s.Deployment); {
		case s.Deployment == nil:
			bad = append(bad, "no Deployment has label app="+s.app)
		case mounted == "":
			bad = append(bad, s.name()+" mounts no Secret")
		case mounted != name:
			bad = append(bad, s.name()+" mounts "+mounted)
		default:
			good = append(good, s.name())
		}
	}
	if len(bad) > 0 {
		return steps.Failed(strings.Join(bad, "; ")+"; expected Secret "+name, setValue(e))
	}
	return steps.Passed("%s mount %s", strings.Join(good, ", "), name)
}

// mountedKubeconfigs returns the kubeconfigs Secret that a Deployment mounts.
func mountedKubeconfigs(d *appsv1.Deployment) string {
	if d == nil {
		return ""
	}
	return check.MountedSecret(d, kubeconfigsVolume)
}
