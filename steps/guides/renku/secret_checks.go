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
			Name: "kubeconfig-stored", Title: "the kubeconfigs Secret holds this cluster's key", On: steps.Local,
			FixedBy: "secret", Needs: []string{"renku-namespace"},
			Why:        "Renku finds the kubeconfig by the config_name that the cluster is registered with: that is the key",
			References: []string{page, kubeconfigSource},
			Run:        kubeconfigStored,
		},
		{
			Name: "stored-kubeconfig", Title: "what stands under that key is a kubeconfig that Renku's services can use",
			On: steps.Local, FixedBy: "secret", Needs: []string{"kubeconfig-stored"},
			Why: "this is the file that they read; what is wrong with it costs a single warning in their logs and the cluster " +
				"is not there. " +
				"The published guide's text of this Secret has no current-context",
			References: []string{kubeconfigSource, "kr8s-org/kr8s issue 737"},
			Run:        storedIsGood,
		},
		{
			Name: "stored-server-tls", Title: "the server in it proves itself to the CA in it", On: steps.Local,
			From: "this machine", Needs: []string{"stored-kubeconfig"},
			Why:        "Renku trusts that CA alone; an address or a certificate that has changed since shows here first",
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
			Name: "stored-is-proved", Title: "it is the kubeconfig that was tried and proved", On: steps.Local,
			FixedBy: "secret", Needs: []string{"stored-kubeconfig", "peer/credential-accepted"},
			Why: "another one may be out of date, or grant more than it has to",
			Run: storedIsProved,
		},
		{
			Name: "kubeconfigs-value", Title: "Renku's values name that Secret", On: steps.Local,
			Needs: []string{"renku-namespace"},
			Why: "without the value no service mounts the Secret. The release is Renku's own: its admin upgrades it, " +
				"not carrick. " +
				"The Secret must be there first, or the new pods stay in ContainerCreating",
			References: []string{page, valuesSource},
			Run:        valueNamesSecret,
		},
		{
			Name: "kubeconfigs-mounted", Title: "the four services mount that Secret", On: steps.Local,
			Needs: []string{"kubeconfigs-value"},
			Why: "data-service, k8s-watcher, data-tasks and secrets-storage each read the kubeconfigs. The published " +
				"guide names three of them, in two different lists",
			References: []string{"SwissDataScienceCenter/renku: helm-chart/renku/templates (data-service/deployment*.yaml, " +
				"secrets-storage/deployment.yaml)"},
			Run: mountedEverywhere,
		},
	}
}

// registeredKubeconfig returns the value under this link's key.
func registeredKubeconfig(ctx context.Context, e steps.Env) (any, error) {
	ns, name := secretWhere(e)
	key := e.Answers.Text("cluster.config-name")
	s, err := e.Cluster.Secret(ctx, ns, name, key)
	if apierrors.IsNotFound(err) {
		return nil, steps.Absent("there is no Secret %s/%s yet", ns, name)
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
		beside = "; it also holds " + strings.Join(others, ", ")
	}
	size, has := s.Keys[key]
	switch missing := fmt.Sprintf("Secret %s/%s has nothing under key %s%s", ns, name, key, beside); {
	case fixed && (!has || size == 0):
		return steps.Failed(missing+", and is immutable", recreateSecret(ctx, e)+" && "+e.ApplyStep("secret")).WithoutAction()
	case !has || size == 0:
		return steps.Undone(missing)
	case fixed:
		const found = "Secret %s/%s is immutable: carrick can neither renew key %s nor remove it%s"
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
			fmt.Sprintf("its context is for namespace %q, not %s", k.Namespace, sessionsNamespace(e)), storedFix(ctx, e),
		)
	}
	address := judgeAddress(k, e.Own)
	if !address.Status.Holds() {
		return address
	}
	if t, err := bearer.Parse(k.Token); err == nil && !t.Expires.IsZero() {
		r := steps.Failed(
			"its token ends on "+t.Expires.Format(time.DateTime)+": the cluster drops out of Renku then", rebuild,
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
		return steps.Passed("both are %s", stored.Hash())
	}
	a, errA := kubeconfig.Parse([]byte(stored.Reveal()))
	b, errB := kubeconfig.Parse([]byte(proved.Reveal()))
	if err := errors.Join(errA, errB); err != nil {
		return kubeconfigUnread(err)
	}
	if normalKubeconfig(a) == normalKubeconfig(b) {
		return steps.Passed("it is written in another way and says the same")
	}
	return steps.Failed("another one is stored, with "+strings.Join(differing(a, b), ", "), storedFix(ctx, e))
}

// differing names the differences between two kubeconfigs and reveals no secret of either.
func differing(a, b kubeconfig.Config) []string {
	var out []string
	for _, part := range []struct {
		what string
		same bool
	}{
		{"server " + a.Server, a.Server == b.Server},
		{"namespace " + a.Namespace, a.Namespace == b.Namespace},
		{"another CA", bytes.Equal(bytes.TrimSpace(a.CA), bytes.TrimSpace(b.CA))},
		{"another token", a.Token == b.Token},
		{"another client certificate", bytes.Equal(a.ClientCert, b.ClientCert) && a.ClientKey == b.ClientKey},
		{"another tls-server-name or proxy-url", a.TLSServerName == b.TLSServerName && a.ProxyURL == b.ProxyURL},
	} {
		if !part.same {
			out = append(out, part.what)
		}
	}
	return out
}

// normalKubeconfig returns a kubeconfig without differences in formatting.
func normalKubeconfig(k kubeconfig.Config) masked.Value {
	k.Name, k.CA = "", bytes.TrimSpace(k.CA)
	return k.Bytes()
}

// renkuUpgrade returns the command with which Renku's admin sets values of the local release.
// extra are further arguments. It returns "" if there is no Helm release to upgrade.
func renkuUpgrade(e steps.Env, extra string) string {
	r, err := e.Own.Map("release")
	if err != nil {
		return ""
	}
	return upgradeLine(textOf(r, "name"), textOf(r, "version"), renkuNamespace(e)+helmSide(e), extra)
}

// upgradeLine quotes the release's own texts, because users paste the line into a shell.
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

// setValue tells Renku's admin how to have the Secret mounted.
func setValue(e steps.Env) string {
	_, name := secretWhere(e)
	after := "    # when Secret " + name + " is there, not before: without it new pods stay in ContainerCreating"
	if line := renkuUpgrade(e, "--set "+steps.Quoted(kubeconfigsPath+"="+name)); line != "" {
		return line + after
	}
	return "set " + kubeconfigsPath + ": " + name + " where Renku's values are kept, and roll it out" + after
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
	if _, err := e.Own.Value("release"); err != nil { // the running Deployments show it, too
		mounted, err := e.Own.Text("kubeconfigs-secret")
		switch {
		case err == nil && mounted == name:
			return steps.Passed("there is no Helm release to read; the data service mounts %s", mounted)
		case err == nil:
			return steps.Failed(
				"the data service mounts Secret "+mounted+", not "+name, "answer secret.name with "+mounted+", or: "+setValue(e),
			)
		case !errors.As(err, &absent):
			return steps.Errored(err)
		}
	}
	return steps.Waits(
		time.Time{}, "%s is not set: Renku's admin sets it to %s once that Secret is there", kubeconfigsPath, name,
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
			bad = append(bad, "there is no Deployment labelled app="+s.app)
		case mounted == "":
			bad = append(bad, s.name()+" mounts none")
		case mounted != name:
			bad = append(bad, s.name()+" mounts "+mounted)
		default:
			good = append(good, s.name())
		}
	}
	if len(bad) > 0 {
		return steps.Failed(strings.Join(bad, "; ")+": not Secret "+name, setValue(e))
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
