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
			Why: "If the kubeconfig is unusable, Renku ignores the cluster and logs one warning. The example in the published " +
				"guide has no current-context.",
			References: []string{kubeconfigSource, "kr8s-org/kr8s issue 737"},
			Run:        storedIsGood,
		},
		{
			Name: "stored-server-tls", Title: "The server's certificate verifies against the stored CA", On: steps.Local,
			From: "this machine", Needs: []string{"stored-kubeconfig"},
			Why:        "Renku trusts only the stored CA, so a changed address or certificate breaks the connection.",
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
			Name: "stored-is-tested", Title: "The stored kubeconfig matches the tested kubeconfig", On: steps.Local,
			FixedBy: "secret", Needs: []string{"stored-kubeconfig", "peer/credential-accepted"},
			Why: "Another kubeconfig can be outdated or grant more than Renku needs.",
			Run: storedIsProved,
		},
		{
			Name: "kubeconfigs-value", Title: "Renku's Helm values name the kubeconfigs Secret", On: steps.Local,
			Needs: []string{"renku-namespace"},
			Why: "Without this value no service mounts the Secret. Set the value only after the Secret exists, or new " +
				"pods stay in ContainerCreating.",
			References: []string{page, valuesSource},
			Run:        valueNamesSecret,
		},
		{
			Name: "kubeconfigs-mounted", Title: "The four services mount the kubeconfigs Secret", On: steps.Local,
			Needs: []string{"kubeconfigs-value"},
			Why: "data-service, k8s-watcher, data-tasks and secrets-storage read kubeconfigs. The published guide names " +
				"only three services, in two different lists.",
			References: []string{"SwissDataScienceCenter/renku: helm-chart/renku/templates (data-service/deployment*.yaml, " +
				"secrets-storage/deployment.yaml)"},
			Run: mountedEverywhere,
		},
	}
}

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
			missing+", and the Secret is immutable", recreateSecret(ctx, e)+" && "+e.ApplyStep("secret"),
		).WithoutAction()
	case !has || size == 0:
		return steps.Undone(missing)
	case fixed:
		const found = "Secret %s/%s is immutable: carrick can neither change nor remove key %s%s"
		return steps.Warned(fmt.Sprintf(found, ns, name, key, beside), recreateSecret(ctx, e)+" && "+e.ApplyStep("secret")).
			WithoutAction()
	}
	return steps.Passed("Secret %s/%s has key %s%s", ns, name, key, beside)
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
			"the token expires on "+t.Expires.Format(time.DateTime)+". After that, Renku cannot access the cluster", rebuild,
		)
		r.Again = t.Expires
		return r
	}
	if address.Status != steps.Pass { // a private address is only a warning, so it comes after the failures
		return address
	}
	return steps.Passed("context %s, namespace %s, server %s", k.Name, k.Namespace, k.Server)
}

// storedIsProved compares the stored kubeconfig with the kubeconfig that the step kubeconfig
// tested. The result contains no secrets.
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
		return steps.Passed("both kubeconfigs have hash %s", stored.Hash())
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

// differing describes the differences between two kubeconfigs. It reveals no secrets.
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

// normalKubeconfig removes the name and trims the CA, so that two kubeconfigs with the same content
// are equal.
func normalKubeconfig(k kubeconfig.Config) masked.Value {
	k.Name, k.CA = "", bytes.TrimSpace(k.CA)
	return k.Bytes()
}

// renkuUpgrade returns the helm upgrade command for Renku's release with the additional arguments
// extra. It returns "" if no Helm release can be read.
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

// helmSide returns Helm's flags for the kubeconfig and the context of this side.
func helmSide(e steps.Env) string {
	return strings.TrimPrefix(e.Helm(), "helm")
}

// setValue returns the fix that makes Renku's services mount the Secret.
func setValue(e steps.Env) string {
	_, name := secretWhere(e)
	after := "    # only after Secret " + name + " exists: without the Secret new pods stay in ContainerCreating"
	if line := renkuUpgrade(e, "--set "+steps.Quoted(kubeconfigsPath+"="+name)); line != "" {
		return line + after
	}
	return "set " + kubeconfigsPath + ": " + name + " in Renku's values and upgrade Renku" + after
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
			"Renku's values name Secret "+value+", not "+name, "set secret.name to "+value+", or: "+setValue(e),
		)
	case !errors.As(err, &absent):
		return steps.Errored(err)
	}
	if _, err := e.Own.Value("release"); err != nil { // no Helm release: read the Deployments
		mounted, err := e.Own.Text("kubeconfigs-secret")
		switch {
		case err == nil && mounted == name:
			return steps.Passed("no Helm release is readable, but data-service mounts Secret %s", mounted)
		case err == nil:
			return steps.Failed(
				"data-service mounts Secret "+mounted+", not "+name, "set secret.name to "+mounted+", or: "+setValue(e),
			)
		case !errors.As(err, &absent):
			return steps.Errored(err)
		}
	}
	return steps.Waits(
		time.Time{}, "%s is not set: Renku's admin must set it to %s after the Secret exists", kubeconfigsPath, name,
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
			bad = append(bad, s.name()+" mounts no kubeconfigs Secret")
		case mounted != name:
			bad = append(bad, s.name()+" mounts "+mounted)
		default:
			good = append(good, s.name())
		}
	}
	if len(bad) > 0 {
		return steps.Failed(strings.Join(bad, "; ")+"; expected Secret "+name, setValue(e))
	}
	return steps.Passed("%s mount Secret %s", strings.Join(good, ", "), name)
}

// mountedKubeconfigs returns the name of the kubeconfigs Secret that a Deployment mounts, or ""
// if it mounts none.
func mountedKubeconfigs(d *appsv1.Deployment) string {
	if d == nil {
		return ""
	}
	return check.MountedSecret(d, kubeconfigsVolume)
}
