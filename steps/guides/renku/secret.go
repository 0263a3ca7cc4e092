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

// secret returns the step that passes the kubeconfig to Renku: one key of a Secret that Renku's
// services mount as a directory.
func secret() steps.Step {
	return steps.Step{
		Name: "secret", Title: "Kubeconfigs Secret",
		Why: "Renku reads the kubeconfigs of all remote clusters from one Secret, one key per cluster. carrick writes only " +
			"this cluster's key. The Secret must exist before Renku's values name it, or new pods stay in ContainerCreating.",
		Ask: []steps.Question{
			{
				Key: "secret.name", Title: "Name of the kubeconfigs Secret", Kind: steps.Name,
				Help: "The Secret in Renku's namespace that dataService.remoteClustersKubeconfigSecretName names. It can " +
					"already contain other clusters.",
				Default: secretName,
			},
			configNameQuestion(),
			{
				Key: "secret.backup", Title: "Backup file for an existing value of that key", Kind: steps.Path,
				NotFromPeer: true, Opt: true,
				Adopt: adoptBackup,
				Check: checkBackup,
				Help: "Needed only to take over a key that another user or tool wrote: carrick first saves the old value there. " +
					"The name must end in .before. If it is empty, carrick never overwrites the key.",
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

// newSecret is the name of the Secret if none is configured yet.
const newSecret = "renku-remote-clusters"

func secretName(e steps.Env) (any, string) {
	if name, err := e.Own.Text("kubeconfigs-secret"); err == nil {
		return name, "Renku already uses it"
	}
	return newSecret, "default, Renku's values name none"
}

// configName matches names that Renku's API accepts. The API reports a name that exceeds its
// column of 40 characters only as HTTP 500 (renku-data-services
// components/renku_data_services/crc).
var configName = regexp.MustCompile(`^[a-zA-Z0-9._-]+[.]yaml$`)

func checkConfigName(v string) error {
	if n := utf8.RuneCountInString(v); n > nameMax || !configName.MatchString(v) || strings.HasPrefix(v, "..") {
		return fmt.Errorf(
			"%q is not a valid config name: use letters, digits, . _ and -, ending in .yaml, at most %d characters (it has %d)",
			v, nameMax,
			n,
		)
	}
	return nil
}

func configNameQuestion() steps.Question {
	return steps.Question{
		Key: "cluster.config-name", Title: "Key of the kubeconfig in that Secret", Kind: steps.Text, Check: checkConfigName,
		Adopt: adoptKey,
		Help: "The name ends in .yaml and has at most 40 characters, such as paris.yaml. It is also the cluster's " +
			"config_name in Renku's API.",
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
