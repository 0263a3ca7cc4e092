package check

import (
	"errors"

	"go.yaml.in/yaml/v3"
)

// LooseKubeconfig contains the readable parts of a kubeconfig, even if other parts are invalid. Checks that use
// kubeconfig.Parse report the errors.
type LooseKubeconfig struct {
	Current  string `yaml:"current-context"`
	Contexts []struct {
		Name    string       `yaml:"name"`
		Context LooseContext `yaml:"context"`
	} `yaml:"contexts"`
	Clusters []struct {
		Name    string       `yaml:"name"`
		Cluster LooseCluster `yaml:"cluster"`
	} `yaml:"clusters"`
	Users []struct {
		Name string    `yaml:"name"`
		User LooseUser `yaml:"user"`
	} `yaml:"users"`

	Misshapen bool `yaml:"-"` // a field had the wrong type and was omitted
}

// LooseContext is a context of a LooseKubeconfig.
type LooseContext struct {
	Cluster   string `yaml:"cluster"`
	User      string `yaml:"user"`
	Namespace string `yaml:"namespace"`
}

// LooseCluster is a cluster of a LooseKubeconfig.
type LooseCluster struct {
	Server string `yaml:"server"`
	CAFile string `yaml:"certificate-authority"`
	CAData string `yaml:"certificate-authority-data"`
}

// LooseUser is a user of a LooseKubeconfig.
type LooseUser struct {
	Token     string `yaml:"token"`
	TokenFile string `yaml:"tokenFile"`
	Exec      struct {
		Command string `yaml:"command"`
	} `yaml:"exec"`
	AuthProvider struct {
		Name string `yaml:"name"`
	} `yaml:"auth-provider"`
	Cert     string `yaml:"client-certificate-data"`
	CertFile string `yaml:"client-certificate"`
	As       string `yaml:"as"`
}

// ReadLoosely parses a kubeconfig and omits fields of the wrong type. Its error does not quote the kubeconfig, which
// can contain a secret.
func ReadLoosely(text []byte) (LooseKubeconfig, error) {
	var k LooseKubeconfig
	err := yaml.Unmarshal(text, &k)
	k.Misshapen = errors.As(err, new(*yaml.TypeError))
	if err != nil && !k.Misshapen {
		return LooseKubeconfig{}, errors.New("the kubeconfig cannot be read")
	}
	return k, nil
}

// Context returns the named context. If several have the same name, it returns the last one. If none has, found is
// false.
func (k LooseKubeconfig) Context(name string) (out LooseContext, found bool) {
	for _, c := range k.Contexts {
		if c.Name == name {
			out, found = c.Context, true
		}
	}
	return out, found
}

// Cluster returns the named cluster. It handles duplicates as Context does.
func (k LooseKubeconfig) Cluster(name string) (out LooseCluster, found bool) {
	for _, c := range k.Clusters {
		if c.Name == name {
			out, found = c.Cluster, true
		}
	}
	return out, found
}

// User returns the named user, or the zero value if there is none.
func (k LooseKubeconfig) User(name string) (out LooseUser) {
	for _, u := range k.Users {
		if u.Name == name {
			out = u.User
		}
	}
	return out
}
