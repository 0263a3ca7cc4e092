package renku

import (
	"fmt"
	"regexp"
	"unicode/utf8"

	"carrick/steps"
)

// configNameQuestion belongs to the step secret, which writes that key.
func configNameQuestion() steps.Question {
	return steps.Question{
		Key: "cluster.config-name", Title: "Key of the kubeconfig in Renku's Secret", Kind: steps.Text, Check: checkConfigName,
		Help: "The key in the kubeconfigs Secret and the config_name of the cluster in Renku's API are one: ending in .yaml, at most 40 characters.",
		Default: func(e steps.Env) (any, string) {
			if name := e.Link + ".yaml"; checkConfigName(name) == nil {
				return name, "the link's name"
			}
			return nil, ""
		},
	}
}

// configName is what Renku's API asks for; that the column holds 40 characters
// it says with HTTP 500 (renku-data-services components/renku_data_services/crc).
var configName = regexp.MustCompile(`^[a-zA-Z0-9._-]+[.]yaml$`)

func checkConfigName(v string) error {
	if n := utf8.RuneCountInString(v); !configName.MatchString(v) || n > nameMax {
		return fmt.Errorf("%q is no config name: letters, digits, . _ and -, ending in .yaml, at most %d characters (it has %d)", v, nameMax, n)
	}
	return nil
}
