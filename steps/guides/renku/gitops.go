package renku

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"carrick/cluster/kubeconfig"
	"carrick/cluster/masked"
	"carrick/steps"
	"carrick/steps/action"
)

// The parts of this guide that are not manifests are exported as commands, together with the files
// that the commands require. Exports depend only on answers and facts, not on the state of Renku.
// An export is therefore the same before and after apply.

// Export returns a kubeconfig template and the commands that fill it from the token Secret. The
// result is byte for byte the kubeconfig that carrick builds. Export returns no manifest of the
// kubeconfigs Secret, because other links share this Secret and its content is confidential.
func (s sharedSecret) Export(_ context.Context, e steps.Env) ([]action.Exported, error) {
	ns, name := secretWhere(e)
	key := e.Answers.Text("cluster.config-name")
	values, err := renkuValues(e, name)
	if err != nil {
		return nil, err
	}
	out := []action.Exported{
		{Path: "renku.values.yaml", Content: values},
		{
			Note: "renku.values.yaml contains values for Renku's Helm release. Merge them into the release's values after the " +
				"Secret exists",
		},
		{Left: fmt.Sprintf("Secret %s/%s (key %s)", ns, name, key)},
	}
	apply := fmt.Sprintf(
		"kubectl create secret generic %s -n %s --from-file=%s=%%s --dry-run=client -o yaml |\n  %s apply --server-side "+
			"--field-manager=%s -f -",
		name, ns, key, e.Kubectl(), e.Link,
	)
	const hint = "# each cluster's key has its own field manager, so that applying one key does not remove another"
	if path := e.Answers.Text("kubeconfig.file"); path != "" {
		return append(out, action.Exported{Hand: hint + "\n" + fmt.Sprintf(apply, singleQuoted(path))}), nil
	}
	template, err := kubeconfigTemplate(e)
	if err != nil {
		return nil, err
	}
	file := key + ".gotemplate"
	get := fmt.Sprintf("%s -n %s get secret %s -o go-template-file=files/%s/%s |\n  ",
		e.PeerKubectl(), sessionsNamespace(e), e.Answers.Text("identity.token-secret"), e.Side, file)
	return append(out,
		action.Exported{Path: file, Content: template},
		action.Exported{
			Hand: "# to seal the Secret (Sealed Secrets, SOPS), omit the last line: the command then prints the Secret\n" +
				hint + "\n" + get +
				fmt.Sprintf(apply, "/dev/stdin"),
		},
		action.Exported{
			Hand: "# then merge files/" + string(e.Side) +
				"/renku.values.yaml into Renku's values where you keep them. Do not remove existing values",
		}), nil
}

// kubeconfigTemplate returns the kubeconfig as a Go template for kubectl. Template expressions
// replace the values that only the token Secret contains.
func kubeconfigTemplate(e steps.Env) ([]byte, error) {
	const token, ca = "TOKEN-OF-THE-SECRET", "CA-OF-THE-SECRET"
	k := kubeconfig.Config{
		Name: e.Link, Server: e.Answers.Text("remote.server"), CA: []byte(ca),
		Namespace: sessionsNamespace(e), Token: masked.New(token),
	}
	if e.Answers.Text("kubeconfig.ca") == "context" {
		pem, err := e.Peer.Text("kubeconfig-ca")
		if err != nil {
			return nil, err
		}
		k.CA = []byte(pem)
	}
	text := k.Bytes().Reveal()
	if strings.Contains(text, "{{") || strings.Count(text, token) != 1 {
		return nil, fmt.Errorf("the kubeconfig cannot be written as a template: %q is not a valid server address", k.Server)
	}
	text = strings.Replace(text, token, "{{.data.token | base64decode}}", 1)
	text = strings.Replace(text, base64.StdEncoding.EncodeToString([]byte(ca)), `{{index .data "ca.crt"}}`, 1)
	return []byte(text), nil
}

// renkuValues returns a values file for Renku's Helm release with the values that the checks
// require.
func renkuValues(e steps.Env, secret string) ([]byte, error) {
	values := map[string]any{"dataService": map[string]any{"remoteClustersKubeconfigSecretName": secret}}
	if origin := sessionsOrigin(e); origin != "" {
		oidc := map[string]any{}
		for fact, v := range map[string]struct{ value, add string }{
			"redirect-uris": {"extraRedirectUris", origin + "/*"}, "web-origins": {"extraWebOrigins", origin},
		} {
			have, err := e.Own.List(fact)
			if err != nil && !steps.IsAbsent(err) {
				return nil, err
			}
			if !slices.Contains(have, v.add) {
				have = append(slices.Clone(have), v.add)
			}
			list, err := json.Marshal(have)
			if err != nil {
				return nil, err
			}
			oidc[v.value] = string(list)
		}
		values["notebooks"] = map[string]any{"oidc": oidc}
	}
	text, err := yaml.Marshal(values)
	return append(
		[]byte("# Values for Renku's Helm release. The two lists are strings that contain JSON.\n"), text...,
	), err
}

// exportRestart returns kubectl commands that restart the services. kubectl adds an annotation to
// the pod templates. No manifest contains this annotation, so GitOps tools do not remove it.
func exportRestart(ctx context.Context, e steps.Env) ([]action.Exported, error) {
	all, err := servicesOf(ctx, e)
	if err != nil {
		return nil, err
	}
	ns := renkuNamespace(e)
	var names []string
	for _, s := range all {
		if s.Deployment == nil {
			return nil, steps.Absent("no Deployment with label app=%s exists in namespace %s", s.app, ns)
		}
		names = append(names, s.Name)
	}
	k := e.Kubectl() + " -n " + ns
	lines := []string{
		"# run this after the key and the cluster exist. Note: " + harm,
		fmt.Sprintf(
			"sleep %d    # clocks can differ by %s, and the services must start after the cluster is registered",
			int(clocksApart.Seconds())+1, clocksApart,
		),
		k + " rollout restart deployment " + strings.Join(names, " "),
	}
	for _, name := range names {
		lines = append(lines, k+" rollout status deployment "+name+" --timeout=5m")
	}
	return []action.Exported{{Hand: strings.Join(lines, "\n")}}, nil
}

// Export returns only a note, because the test session is temporary.
func (s testSession) Export(context.Context, steps.Env) ([]action.Exported, error) {
	return []action.Exported{
		{Hand: "# a test session is not part of the setup: carrick starts one, checks it and deletes it"},
	}, nil
}

// reachJob is the manifest of the connection test Job, which exports omit.
type reachJob struct{ action.Manifest }

// Export returns only a note, because the Job is temporary.
func (j reachJob) Export(context.Context, steps.Env) ([]action.Exported, error) {
	return []action.Exported{
		{Hand: "# the connection test Job is not part of the setup: carrick runs it, and undo removes it"},
	}, nil
}

func singleQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
