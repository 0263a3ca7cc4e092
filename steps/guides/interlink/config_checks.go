package interlink

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"carrick/cluster/clean"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/check"
)

func configChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "config-parses", Title: "the virtual kubelet can read its configuration", On: steps.Local,
			Needs: []string{"signed-in"}, FixedBy: "config",
			Why: "one that is no YAML makes it stop at once, with \"did not find expected key\", again and again: no " +
				"pod of the virtual node is looked after any more",
			References: []string{vkChartSource, vkReads}, Run: configParses,
		},
		{
			Name: "config-address", Title: "the configuration names the endpoint", On: steps.Local,
			Needs: []string{"config-parses"}, FixedBy: "config",
			Why: "jobs are told both, the address and the port, or neither. An address of the cluster's own network, " +
				"such as that of the Service kubernetes, can't be reached from where jobs run",
			References: []string{vkSource}, Run: configAddress,
		},
		{
			Name: "projected-volumes", Title: "tokens are handed over to the plugin", On: steps.Local,
			Needs: []string{"config-parses"}, FixedBy: "config",
			Why: "DisableProjectedVolumes takes the volume with the token, ca.crt and namespace out of every pod " +
				"before the plugin sees it",
			References: []string{vkSource}, Run: projectedVolumes,
		},
		{
			Name: "config-ca", Title: "jobs are given the CA that proves the endpoint", On: steps.Local,
			Needs: []string{"config-address"}, FixedBy: "config",
			Why: "kubectl and every client library trust the ca.crt beside the token and nothing else. Without " +
				"KubernetesApiCaCrt that is the cluster's own CA, which did not sign the endpoint's certificate",
			References: []string{vkSource}, Run: configCA,
		},
		{
			Name: "config-loaded", Title: "the virtual kubelet runs with that configuration", On: steps.Local,
			Needs: []string{"config-parses"}, FixedBy: "restart", Timeout: 5 * time.Minute,
			Why: "the file is mounted by subPath, which no change of a ConfigMap ever reaches, and it is read once, " +
				"at the start",
			References: []string{"interlink-hq/interlink-helm-chart: interlink/templates/virtual-kubelet.yaml", vkReads},
			Run:        configLoaded,
		},
		{
			Name: "log-quiet", Title: "the virtual kubelet prints no tokens", On: steps.Local, Needs: []string{"config-parses"},
			FixedBy: "config",
			Why: "with VerboseLogging it writes each token that it makes into its log, and it makes them for 100 " +
				"years. The chart renders VerboseLogging: true even where its value is false; errorsOnlyLogging does not help, " +
				"because VerboseLogging is looked at first",
			References: []string{vkChartSource, vkReads}, Run: logQuiet,
		},
		servingCheck(),
	}
}

func editByHand(e steps.Env) string {
	return e.Kubectl() + " -n " + vkNamespace(e) + " edit configmap " + vkConfigMap(e)
}

// endpointFirst is the fix if the endpoint that the configuration must name does not exist yet,
// or "" if it exists.
func endpointFirst(e steps.Env) string {
	if _, err := configuredEndpoint(e); notThere(err) {
		return "carrick apply " + e.LinkFile() + "    # the endpoint first, then the configuration that names it"
	}
	return ""
}

func configParses(ctx context.Context, e steps.Env) steps.Result {
	text, err := standingConfig(ctx, e)
	if notThere(err) {
		return steps.Failed(err.Error(), noKubelet(e).Fix)
	}
	if err != nil {
		return steps.Errored(err)
	}
	values, err := parseConfig(text)
	switch {
	case err == nil:
		return steps.Passed("ConfigMap %s/%s, %d keys", vkNamespace(e), vkConfigMap(e), len(values))
	case chartBug(text):
		return steps.Failed(
			fmt.Sprintf(
				"%s in ConfigMap %s/%s is no YAML (%s): the chart has indented the CA wrongly, as every release since 0.5.3 does",
				kubeletConfigKey, vkNamespace(e), vkConfigMap(e), clean.Text(err.Error()),
			),
			endpointFirst(e),
		)
	}
	return steps.Failed(
		fmt.Sprintf(
			"%s in ConfigMap %s/%s can't be read: %s", kubeletConfigKey, vkNamespace(e), vkConfigMap(e), clean.Text(err.Error()),
		),
		editByHand(e),
	)
}

func configAddress(ctx context.Context, e steps.Env) steps.Result {
	values, err := e.Own.Map("vk-config")
	if err != nil {
		return steps.Errored(err)
	}
	host, port := configText(values, keyAddress), configText(values, keyPort)
	said := clean.Text(fmt.Sprintf("%s %q, %s %q", keyAddress, host, keyPort, port))
	switch {
	case host == "" && port == "":
		return steps.Failed("neither "+keyAddress+" nor "+keyPort+" is set: jobs are told of no API", endpointFirst(e))
	case host == "" || port == "":
		return steps.Failed(said+": with one of them alone jobs are told neither", "")
	}
	if wrong := wrongAddress(host, port); wrong != "" {
		return steps.Failed(said+": "+wrong, "")
	}
	if own, err := serviceAddress(ctx, e, host); err != nil {
		return steps.Errored(err)
	} else if own != "" {
		return steps.Failed(said+": that is "+own+", which only pods of the cluster reach", "")
	}
	at, err := configuredEndpoint(e)
	if notThere(err) {
		return steps.Warned(
			said+"; whether that is the endpoint can't be told: "+err.Error(),
			"carrick check "+e.LinkFile()+" --only certificate-secret,endpoint-certificate",
		)
	}
	if err != nil {
		return steps.Errored(err)
	}
	if host != at.host || port != at.port {
		return steps.Failed(fmt.Sprintf("%s, and the endpoint is %s port %s", said, at.host, at.port), "")
	}
	return steps.Passed("%s port %s", at.host, at.port)
}

// wrongAddress describes what is wrong with an address and a port.
func wrongAddress(host, port string) string {
	n, err := strconv.Atoi(port)
	ip, isIP := netip.ParseAddr(host)
	switch {
	case strings.Contains(host, "://"):
		return "the address has a scheme, which becomes a part of the host's name"
	case isIP == nil && ip.IsUnspecified():
		return "that is no address that anybody reaches"
	case isIP != nil && strings.ContainsAny(host, ":/"):
		return "the address has a port or a path in it"
	case strings.HasSuffix(host, ".svc") || strings.Contains(host, ".svc.") || strings.HasSuffix(host, ".cluster.local"):
		return "that is a name of the cluster's own DNS, which jobs can't resolve"
	case err != nil || n < 1 || n > 65535:
		return "that is no port"
	}
	return ""
}

// serviceAddress names the Service kubernetes if host is its address.
func serviceAddress(ctx context.Context, e steps.Env, host string) (string, error) {
	s, err := check.Get[corev1.Service](ctx, e.Cluster, check.Services, "default", "kubernetes")
	if err != nil {
		return "", err
	}
	for _, ip := range append([]string{s.Spec.ClusterIP}, s.Spec.ClusterIPs...) {
		if ip == host {
			return "the address of Service default/kubernetes", nil
		}
	}
	return "", nil
}

func projectedVolumes(_ context.Context, e steps.Env) steps.Result {
	values, err := e.Own.Map("vk-config")
	if err != nil {
		return steps.Errored(err)
	}
	if values[keyDropped] == true {
		return steps.Failed(keyDropped+" is true: jobs get no token and no ca.crt", "")
	}
	return steps.Passed("%s is not set, or false", keyDropped)
}

func configLoaded(ctx context.Context, e steps.Env) steps.Result {
	var text string
	err := meanwhile(ctx, e, func() (err error) {
		text, err = standingConfig(ctx, e)
		return err
	})
	if err != nil {
		return steps.Errored(err)
	}
	s, err := startsOf(ctx, e, steps.HashOf(text))
	if err != nil {
		return steps.Errored(err)
	}
	restart := fmt.Sprintf("%s -n %s rollout restart deployment %s", e.Kubectl(), vkNamespace(e), vkDeployment(e))
	switch {
	case s.pods == 0:
		return steps.Failed(
			fmt.Sprintf("no pod of Deployment %s/%s runs", vkNamespace(e), vkDeployment(e)),
			e.Kubectl()+" -n "+vkNamespace(e)+" describe deployment "+vkDeployment(e),
		)
	case len(s.old) > 0:
		return steps.Failed(
			fmt.Sprintf("%s; the configuration is of %s", strings.Join(s.old, "; "), s.Changed.UTC().Format(time.DateTime)),
			restart,
		)
	}
	pods, err := podsOfKubelet(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	for _, p := range pods {
		if r, whole := kubeletPod(e, p); !whole {
			return r
		}
	}
	return steps.Passed("it has started since the configuration was written")
}

// kubeletPod describes what is wrong with a pod of the virtual kubelet.
func kubeletPod(e steps.Env, p *corev1.Pod) (r steps.Result, whole bool) {
	logs := fmt.Sprintf("%s -n %s logs %s -c %s --previous --tail=20", e.Kubectl(), p.Namespace, p.Name, kubeletName)
	for _, c := range p.Status.ContainerStatuses {
		if c.Name != kubeletName {
			continue
		}
		if w := c.State.Waiting; w != nil && w.Reason == "CrashLoopBackOff" {
			return steps.Failed(
				fmt.Sprintf("pod %s stops again and again (CrashLoopBackOff, %d restarts)", p.Name, c.RestartCount), logs,
			), false
		}
		if c.Ready {
			return steps.Result{}, true
		}
	}
	since := p.CreationTimestamp.Time
	if p.Status.StartTime != nil {
		since = p.Status.StartTime.Time
	}
	return steps.Waits(
		since, "pod %s is %s, and not ready", p.Name, cmp.Or(string(p.Status.Phase), "new"),
	).Or(e.Kubectl() + " -n " + p.Namespace + " describe pod " + p.Name), false
}

// printsToken is the virtual kubelet's log text before a token.
const printsToken = "could get token"

func logQuiet(ctx context.Context, e steps.Env) steps.Result {
	var values map[string]any
	err := meanwhile(ctx, e, func() (err error) {
		values, err = e.Own.Map("vk-config")
		return err
	})
	if err != nil {
		return steps.Errored(err)
	}
	if values[keyVerbose] == true {
		return steps.Failed(keyVerbose+" is true: each token that it makes, for 100 years, goes into its log", "")
	}
	pods, err := podsOfKubelet(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	for _, p := range pods {
		log, err := tracked.Look(
			ctx, "log/"+p.Namespace+"/"+p.Name+"/"+string(p.UID), time.Minute, func(ctx context.Context) (bool, error) {
				text, err := e.Cluster.Logs(ctx, p.Namespace, p.Name, kubeletName, 2000)
				return strings.Contains(text, printsToken), err
			},
		)
		if err != nil {
			return steps.Errored(err)
		}
		if log {
			return steps.Failed(fmt.Sprintf("the log of pod %s/%s holds tokens of jobs (%q)", p.Namespace, p.Name, printsToken),
				fmt.Sprintf(
					"%s -n %s delete pod %s    # its log goes with it; tokens that were printed die with the pods that they are "+
						"for: delete those, too, and what a log collector has kept",
					e.Kubectl(), p.Namespace, p.Name,
				))
		}
	}
	return steps.Passed("%s is false, and the last 2000 lines of its log hold none", keyVerbose)
}
