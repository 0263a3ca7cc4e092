package interlink

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"carrick/steps"
	"carrick/steps/action"
)

const valuesFile = "interlink.values.yaml"

// exportConfig returns a values file for InterLink's chart with its helm upgrade command, and the command that sets the
// CA and logging in the ConfigMap. The values file omits the CA, because charts since 0.5.3 render an invalid
// configuration if their values set a CA.
func exportConfig(ctx context.Context, e steps.Env) ([]action.Exported, error) {
	at, err := configuredEndpoint(e)
	if err != nil {
		return nil, err
	}
	r, err := theRelease(ctx, e)
	if err != nil {
		return nil, err
	}
	name, version, broken := "RELEASE", "", true
	if r != nil {
		name, version, broken = r.Name, " --version "+r.Version, breaksCA(r.Version)
	}
	values := map[string]any{
		"kubernetesApiAddr": at.host, "kubernetesApiPort": at.port, "kubernetesApiCaCrt": "",
		"disableProjectedVolumes": false, "exportPodData": false,
		"logging": map[string]any{"verboseLogging": false},
	}
	if !broken {
		values["kubernetesApiCaCrt"] = at.ca
	}
	text, err := yaml.Marshal(map[string]any{"nodeName": nodeName(e), "interlink": values})
	if err != nil {
		return nil, err
	}
	head := []string{
		"# Values for InterLink's chart, in addition to the site's own values.",
		"# The virtual kubelet does not read exportPodData: ExportPodData in the plugin's own configuration decides.",
		"# verboseLogging: false is still rendered as true (a default in the template), so the ConfigMap must be edited.",
	}
	if broken {
		head = append(
			head,
			"# kubernetesApiCaCrt stays empty, because charts since 0.5.3 indent it incorrectly and the configuration is then "+
				"not valid YAML.",
		)
	}
	helm := fmt.Sprintf(
		"%s -n %s upgrade %s %s%s --reuse-values -f files/local/%s%s", e.Helm(), vkNamespace(e), name, chartAt, version,
		valuesFile, onHelm4,
	)
	out := []action.Exported{
		{Path: valuesFile, Content: append([]byte(strings.Join(head, "\n")+"\n"), text...)}, {Hand: helm},
	}
	edit := fmt.Sprintf(
		"%s    # after each helm upgrade: sets the CA and logging, which the chart's values cannot set",
		e.ApplyStep("config"),
	)
	return append(out, action.Exported{Hand: edit}), nil
}
