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
			Name: "config-parses", Title: "The virtual kubelet can read its configuration", On: steps.Local,
			Needs: []string{"signed-in"}, FixedBy: "config",
			Why: "With invalid YAML it crash-loops with \"did not find expected key\", and pods of the virtual node are no " +
				"longer managed.",
			References: []string{vkChartSource, vkReads}, Run: configParses,
		},
		{
			Name: "config-address", Title: "The configuration names the endpoint", On: steps.Local,
			Needs: []string{"config-parses"}, FixedBy: "config",
			Why: "Jobs get neither address nor port unless both are set. They cannot reach an address of the cluster " +
				"network, such as that of Service kubernetes.",
			References: []string{vkSource}, Run: configAddress,
		},
		{
			Name: "projected-volumes", Title: "The virtual kubelet passes tokens to the plugin", On: steps.Local,
			Needs: []string{"config-parses"}, FixedBy: "config",
			Why: "DisableProjectedVolumes removes the volume with the token, ca.crt and namespace from every pod " +
				"before the plugin sees it.",
			References: []string{vkSource}, Run: projectedVolumes,
		},
		{
			Name: "config-ca", Title: "Jobs get the CA that signs the endpoint's certificate", On: steps.Local,
			Needs: []string{"config-address"}, FixedBy: "config",
			Why: "Clients trust only the ca.crt next to the token. Without KubernetesApiCaCrt that is the cluster's " +
				"own CA, which did not sign the certificate.",
			References: []string{vkSource}, Run: configCA,
		},
		{
			Name: "config-loaded", Title: "The virtual kubelet runs with the current configuration", On: steps.Local,
			Needs: []string{"config-parses"}, FixedBy: "restart", Timeout: 5 * time.Minute,
			Why: "The file is mounted with subPath, so no ConfigMap change reaches a running pod. The virtual kubelet " +
				"reads the file only at start.",
			References: []string{"interlink-hq/interlink-helm-chart: interlink/templates/virtual-kubelet.yaml", vkReads},
			Run:        configLoaded,
		},
		{
			Name: "no-tokens-in-log", Title: "The virtual kubelet logs no tokens", On: steps.Local,
			Needs:   []string{"config-parses"},
			FixedBy: "config",
			Why: "With VerboseLogging it logs every token, valid for 100 years. The chart sets it even for false, and " +
				"errorsOnlyLogging does not override it.",
			References: []string{vkChartSource, vkReads}, Run: logQuiet,
		},
		servingCheck(),
	}
}

func editByHand(e steps.Env) string {
	return e.Kubectl() + " -n " + vkNamespace(e) + " edit configmap " + vkConfigMap(e)
}

// endpointFirst returns the command that creates the endpoint before the configuration, or "" if the endpoint exists.
func endpointFirst(e steps.Env) string {
	if _, err := configuredEndpoint(e); isMissing(err) {
		return "carrick apply " + e.LinkFile() + "    # first creates the endpoint, then the configuration that names it"
	}
	return ""
}

func configParses(ctx context.Context, e steps.Env) steps.Result {
	text, err := currentConfig(ctx, e)
	if isMissing(err) {
		return steps.Failed(err.Error(), noKubelet(e).Fix)
	}
	if err != nil {
		return steps.Errored(err)
	}
	values, err := parseConfig(text)
	switch {
	case err == nil:
		return steps.Passed("ConfigMap %s/%s is valid YAML with %d keys", vkNamespace(e), vkConfigMap(e), len(values))
	case chartBug(text):
		return steps.Failed(
			fmt.Sprintf(
				"%s in ConfigMap %s/%s is not valid YAML (%s): the chart indented the CA incorrectly, as every release "+
					"since 0.5.3 does",
				kubeletConfigKey, vkNamespace(e), vkConfigMap(e), clean.Text(err.Error()),
			),
			endpointFirst(e),
		)
	}
	return steps.Failed(
		fmt.Sprintf(
			"%s in ConfigMap %s/%s is not valid: %s", kubeletConfigKey, vkNamespace(e), vkConfigMap(e),
			clean.Text(err.Error()),
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
		return steps.Failed("neither "+keyAddress+" nor "+keyPort+" is set, so jobs get no API address", endpointFirst(e))
	case host == "" || port == "":
		return steps.Failed(said+": jobs get neither value unless both are set", "")
	}
	if wrong := wrongAddress(host, port); wrong != "" {
		return steps.Failed(said+": "+wrong, "")
	}
	if own, err := serviceAddress(ctx, e, host); err != nil {
		return steps.Errored(err)
	} else if own != "" {
		return steps.Failed(said+"; the address is "+own+", which only pods of the cluster can reach", "")
	}
	at, err := configuredEndpoint(e)
	if isMissing(err) {
		return steps.Warned(
			said+"; carrick cannot verify that this is the endpoint: "+err.Error(),
			"carrick check "+e.LinkFile()+" --only certificate-secret,endpoint-certificate",
		)
	}
	if err != nil {
		return steps.Errored(err)
	}
	if host != at.host || port != at.port {
		return steps.Failed(fmt.Sprintf("%s, but the endpoint is %s port %s", said, at.host, at.port), "")
	}
	return steps.Passed("the configuration names %s port %s", at.host, at.port)
}

// wrongAddress describes why jobs cannot use host and port, or returns "" if both are valid.
func wrongAddress(host, port string) string {
	n, err := strconv.Atoi(port)
	ip, isIP := netip.ParseAddr(host)
	switch {
	case strings.Contains(host, "://"):
		return "the address has a scheme, which becomes part of the host name"
	case isIP == nil && ip.IsUnspecified():
		return "the address is unspecified, so no job can reach it"
	case isIP != nil && strings.ContainsAny(host, ":/"):
		return "the address contains a port or a path"
	case strings.HasSuffix(host, ".svc") || strings.Contains(host, ".svc.") || strings.HasSuffix(host, ".cluster.local"):
		return "the address is a DNS name inside the cluster, which jobs cannot resolve"
	case err != nil || n < 1 || n > 65535:
		return "the port is not valid"
	}
	return ""
}

// serviceAddress describes host if it is a cluster IP of Service default/kubernetes. Otherwise it returns "".
func serviceAddress(ctx context.Context, e steps.Env, host string) (string, error) {
	s, err := check.Get[corev1.Service](ctx, e.Cluster, check.Services, "default", "kubernetes")
	if err != nil {
		return "", err
	}
	for _, ip := range append([]string{s.Spec.ClusterIP}, s.Spec.ClusterIPs...) {
		if ip == host {
			return "that of Service default/kubernetes", nil
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
		return steps.Failed(keyDropped+" is true, so jobs get no token and no ca.crt", "")
	}
	return steps.Passed("%s is false or not set", keyDropped)
}

func configLoaded(ctx context.Context, e steps.Env) steps.Result {
	var text string
	err := meanwhile(ctx, e, func() (err error) {
		text, err = currentConfig(ctx, e)
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
			fmt.Sprintf("no pod of Deployment %s/%s is running", vkNamespace(e), vkDeployment(e)),
			e.Kubectl()+" -n "+vkNamespace(e)+" describe deployment "+vkDeployment(e),
		)
	case len(s.old) > 0:
		return steps.Failed(
			fmt.Sprintf(
				"%s, but the configuration changed later, on %s", strings.Join(s.old, "; "), s.Changed.UTC().Format(time.DateTime),
			),
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
	return steps.Passed("the virtual kubelet started after the configuration was written")
}

// kubeletPod checks a pod of the virtual kubelet. If the pod is ready, whole is true. Otherwise r explains why it is
// not ready.
func kubeletPod(e steps.Env, p *corev1.Pod) (r steps.Result, whole bool) {
	logs := fmt.Sprintf("%s -n %s logs %s -c %s --previous --tail=20", e.Kubectl(), p.Namespace, p.Name, kubeletName)
	for _, c := range p.Status.ContainerStatuses {
		if c.Name != kubeletName {
			continue
		}
		if w := c.State.Waiting; w != nil && w.Reason == "CrashLoopBackOff" {
			return steps.Failed(
				fmt.Sprintf("pod %s is crash-looping (CrashLoopBackOff, %d restarts)", p.Name, c.RestartCount), logs,
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
		since, "pod %s is %s and not ready", p.Name, cmp.Or(string(p.Status.Phase), "new"),
	).Or(e.Kubectl() + " -n " + p.Namespace + " describe pod " + p.Name), false
}

// printsToken is the message that precedes a token in the virtual kubelet's log.
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
		return steps.Failed(
			keyVerbose+" is true, so the virtual kubelet logs each token that it creates, and each is valid for 100 years", "",
		)
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
			return steps.Failed(fmt.Sprintf("the log of pod %s/%s contains job tokens (%q)", p.Namespace, p.Name, printsToken),
				fmt.Sprintf(
					"%s -n %s delete pod %s    # deletes its log. Also delete the pods whose tokens were logged, which revokes the "+
						"tokens, and the copies in your log collector",
					e.Kubectl(), p.Namespace, p.Name,
				))
		}
	}
	return steps.Passed("%s is false, and the last 2000 lines of the log contain no token", keyVerbose)
}
