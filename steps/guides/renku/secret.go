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

// secret is the step that passes the kubeconfig to Renku: one key of a Secret that Renku's
// services mount as a directory.
func secret() steps.Step {
	return steps.Step{
		Name: "secret", Title: "Kubeconfigs Secret",
		Why: "Renku reads the kubeconfigs of all its remote clusters from one Secret, a key a cluster. carrick writes this " +
			"cluster's key and leaves the others alone. " +
			"The Secret must be there before Renku's values name it: until it is, new pods stay in ContainerCreating.",
		Ask: []steps.Question{
			{
				Key: "secret.name", Title: "Name of the kubeconfigs Secret", Kind: steps.Name,
				Help: "In Renku's namespace; the one that dataService.remoteClustersKubeconfigSecretName names. It may hold " +
					"other clusters already.",
				Default: secretName,
			},
			configNameQuestion(),
			{
				Key: "secret.backup", Title: "File for a value that stands under that key already", Kind: steps.Path,
				NotFromPeer: true, Opt: true,
				Adopt: adoptBackup,
				Check: checkBackup,
				Help: "Its name ends in .before. Only where somebody else wrote the key and it is to be taken over: the old " +
					"value is saved there first. Empty: it is never overwritten.",
			},
		},
		Facts: []steps.Fact{
			{
				Name: "stored-kubeconfig", Title: "the kubeconfig as Renku gets it", On: steps.Local, Secret: true,
				Learn: registeredKubeconfig,
			},
		},
		Actions: []steps.Action{{
			Name: "secret", Title: "Put the kubeconfig into Renku's Secret", On: steps.Local,
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
		return name, "Renku uses it"
	}
	return newSecret, "Renku's values name none yet"
}

// configName matches names that Renku's API accepts. The API reports a name that exceeds its
// column of 40 characters only as HTTP 500 (renku-data-services
// components/renku_data_services/crc).
var configName = regexp.MustCompile(`^[a-zA-Z0-9._-]+[.]yaml$`)

func checkConfigName(v string) error {
	if n := utf8.RuneCountInString(v); n > nameMax || !configName.MatchString(v) || strings.HasPrefix(v, "..") {
		return fmt.Errorf(
			"%q is no config name: letters, digits, . _ and -, ending in .yaml, at most %d characters (it has %d)", v, nameMax,
			n,
		)
	}
	return nil
}

func configNameQuestion() steps.Question {
	return steps.Question{
		Key: "cluster.config-name", Title: "Key of the kubeconfig in that Secret", Kind: steps.Text, Check: checkConfigName,
		Adopt: adoptKey,
		Help: "Also the cluster's config_name in Renku's API, which finds the file by it. It ends in .yaml and has at " +
			"most 40 characters.",
		Default: func(e steps.Env) (any, string) {
			const end = ".yaml"
			name := e.Link
			if len(name) > nameMax-len(end) {
				name = name[:nameMax-len(end)-9] + "-" + strings.TrimPrefix(masked.New(e.Link).Hash(), "sha256:")[:8]
			}
			return name + end, "the link's name"
		},
	}
}

func secretWhere(e steps.Env) (namespace, name string) {
	return renkuNamespace(e), e.Answers.Text("secret.name")
}
