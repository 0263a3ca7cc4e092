package renku

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"carrick/cluster/masked"
	"carrick/steps"
	"carrick/steps/action"
)

func secret() steps.Step {
	return steps.Step{
		Name: "secret", Title: "Kubeconfigs Secret",
		Map: steps.MapRow{Local: "kubeconfigs Secret"},
		Why: "Renku reads the kubeconfigs of all remote clusters from one Secret, one key per cluster. carrick writes only " +
			"this cluster's key. The Secret must exist before Renku's values name it, or new pods stay in ContainerCreating.",
		Ask: []steps.Question{
			{
				Key: "secret.name", Title: "Name of the kubeconfigs Secret", Kind: steps.Name,
				Help: "Enter the Secret in Renku's namespace that the Helm value dataService.remoteClustersKubeconfigSecretName " +
					"names. The Secret can already contain kubeconfigs of other clusters.",
				Default: secretName,
			},
			configNameQuestion(),
			{
				Key: "secret.backup", Title: "Backup file for an existing value of the key", Kind: steps.Path,
				NotFromPeer: true, Opt: true,
				Adopt: adoptBackup,
				Check: checkBackup,
				Help: "Enter a file name that ends in .before, such as paris.before. carrick saves the old value there before " +
					"it takes over a key that another user or tool wrote. Leave it empty to never overwrite such a key.",
			},
		},
		Facts: []steps.Fact{
			{
				Name: "stored-kubeconfig", Title: "the kubeconfig in Renku's Secret", On: steps.Local, Secret: true,
				Learn: registeredKubeconfig,
			},
		},
		Actions: []steps.Action{{
			Name: "secret", Title: "Write the kubeconfig to Renku's Secret", On: steps.Local,
			Needs: []string{"renku-namespace", "peer/credential-rights", "peer/least-privilege"},
			Doer:  sharedSecret{action.Manifest{File: "kubeconfigs-secret.yaml"}},
		}},
		Checks: secretChecks(),
	}
}

// newSecret is the default name of the kubeconfigs Secret if Renku's values name none.
const newSecret = "renku-remote-clusters"

func secretName(e steps.Env) (any, string) {
	if name, err := e.Own.Text("kubeconfigs-secret"); err == nil {
		return name, "Renku's Deployments or Helm values"
	}
	return newSecret, "carrick's default, because Renku's values name no Secret"
}

// configName matches the file names that Renku's API accepts. The database column has 40
// characters. For a longer name, the API answers only HTTP 500 (renku-data-services
// components/renku_data_services/crc).
var configName = regexp.MustCompile(`^[a-zA-Z0-9._-]+[.]yaml$`)

func checkConfigName(v string) error {
	if n := utf8.RuneCountInString(v); n > nameMax || !configName.MatchString(v) || strings.HasPrefix(v, "..") {
		return fmt.Errorf(
			"%q is not a valid config name: use letters, digits, . _ and -, end the name in .yaml, and use at most %d "+
				"characters (the name has %d)",
			v, nameMax,
			n,
		)
	}
	return nil
}

func configNameQuestion() steps.Question {
	return steps.Question{
		Key: "cluster.config-name", Title: "Key of the kubeconfig in the kubeconfigs Secret", Kind: steps.Text,
		Check: checkConfigName,
		Adopt: adoptKey,
		Help: "Enter a name that ends in .yaml and has at most 40 characters, such as paris.yaml. The key is also the " +
			"cluster's config_name in Renku's API.",
		Default: func(e steps.Env) (any, string) {
			const end = ".yaml"
			name := e.Link
			if len(name) > nameMax-len(end) {
				name = name[:nameMax-len(end)-9] + "-" + strings.TrimPrefix(masked.New(e.Link).Hash(), "sha256:")[:8]
			}
			return name + end, "from the link's name"
		},
	}
}

func secretWhere(e steps.Env) (namespace, name string) {
	return renkuNamespace(e), e.Answers.Text("secret.name")
}
