// How Renku reads the kubeconfig of a remote cluster
// (renku-data-services: components/renku_data_services/k8s/config.py; kr8s
// 0.20.7: kr8s/_auth.py, kr8s/_config.py). Nothing is asked of the cluster
// here. A file named in a kubeconfig does not exist in Renku's pods, and no
// program that a kubeconfig names is in their image: the stand-in neither
// opens the one nor runs the other.

package renkuapi

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
)

// kubeFile are the keys of a kubeconfig that count. Pointers tell a key that
// is missing from an empty one.
type kubeFile struct {
	Current  *string `json:"current-context"`
	Contexts []struct {
		Name    string `json:"name"`
		Context struct {
			Cluster   *string `json:"cluster"`
			User      *string `json:"user"`
			Namespace string  `json:"namespace"`
		} `json:"context"`
	} `json:"contexts"`
	Clusters []struct {
		Name    string      `json:"name"`
		Cluster kubeCluster `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		Name string   `json:"name"`
		User kubeUser `json:"user"`
	} `json:"users"`
}

type kubeCluster struct {
	Server   string `json:"server"`
	CAData   string `json:"certificate-authority-data"`
	CAFile   string `json:"certificate-authority"`
	Insecure bool   `json:"insecure-skip-tls-verify"`
	Name     string `json:"tls-server-name"`
}

type kubeUser struct {
	Token        string          `json:"token"`
	CertData     string          `json:"client-certificate-data"`
	KeyData      string          `json:"client-key-data"`
	CertFile     string          `json:"client-certificate"`
	KeyFile      string          `json:"client-key"`
	Username     string          `json:"username"`
	Password     string          `json:"password"`
	AuthProvider json.RawMessage `json:"auth-provider"`
	Exec         *struct {
		APIVersion string `json:"apiVersion"`
		Command    string `json:"command"`
	} `json:"exec"`
}

// kubeconfig is one that was read and is a mapping.
type kubeconfig struct{ file kubeFile }

func readKubeconfig(data []byte) (*kubeconfig, error) {
	text, err := yaml.ToJSON(data)
	if err != nil {
		return nil, errors.New("the file is not YAML")
	}
	anything := map[string]json.RawMessage{}
	if json.Unmarshal(text, &anything) != nil || anything == nil {
		return nil, errors.New("the kubeconfig is not a mapping")
	}
	k := &kubeconfig{}
	if err := json.Unmarshal(text, &k.file); err != nil {
		wrong := &json.UnmarshalTypeError{}
		if errors.As(err, &wrong) {
			return nil, fmt.Errorf("the key %s is a %s", wrong.Field, wrong.Value)
		}
		return nil, errors.New("the kubeconfig has keys of the wrong type")
	}
	return k, nil
}

// connect returns the connection of the current context. Its errors are in
// Python's manner: a missing key is the key in quotes.
func (k *kubeconfig) connect() (*connection, error) {
	switch {
	case k.file.Current == nil:
		return nil, errors.New("'current-context'")
	case *k.file.Current == "":
		return nil, errors.New("the current-context is empty")
	}
	for _, c := range k.file.Contexts {
		if c.Name != *k.file.Current {
			continue
		}
		switch {
		case c.Context.Cluster == nil:
			return nil, errors.New("'cluster'")
		case c.Context.User == nil:
			return nil, errors.New("'user'")
		}
		config, err := k.config(*c.Context.Cluster, *c.Context.User)
		if err != nil {
			return nil, err
		}
		namespace := c.Context.Namespace
		if namespace == "" {
			namespace = "default"
		}
		return &connection{config: config, namespace: namespace}, nil
	}
	return nil, fmt.Errorf("no context %q", *k.file.Current)
}

func (k *kubeconfig) config(cluster, user string) (*rest.Config, error) {
	config := &rest.Config{}
	found := false
	for _, c := range k.file.Clusters {
		if c.Name == cluster {
			found = true
			if err := c.Cluster.apply(config); err != nil {
				return nil, err
			}
			break
		}
	}
	if !found {
		return nil, fmt.Errorf("no cluster %q", cluster)
	}
	for _, u := range k.file.Users {
		if u.Name != user {
			continue
		}
		if err := u.User.apply(config); err != nil {
			return nil, err
		}
		trust(config)
		return config, nil
	}
	return nil, fmt.Errorf("no user %q", user)
}

// trust takes back "do not verify" where neither CA nor client certificate is
// given, for kr8s then makes no TLS settings of its own.
func trust(config *rest.Config) {
	if len(config.CAData) == 0 && len(config.CertData) == 0 {
		config.Insecure = false
	}
	if config.Insecure {
		config.CAData = nil // client-go takes one or the other
	}
}

func (c kubeCluster) apply(config *rest.Config) error {
	if c.Server == "" {
		return errors.New("'server'")
	}
	if c.CAFile != "" && c.CAData == "" {
		return noFile(c.CAFile)
	}
	config.Host, config.ServerName, config.Insecure = c.Server, c.Name, c.Insecure
	return decode(c.CAData, "certificate-authority-data", &config.CAData)
}

func (u kubeUser) apply(config *rest.Config) error {
	switch {
	case u.Exec != nil && u.Exec.APIVersion == "client.authentication.k8s.io/v1alpha1":
		return errors.New("exec of version v1alpha1 is not supported")
	case u.Exec != nil:
		return noFile(u.Exec.Command)
	case u.Username != "" || u.Password != "":
		return errors.New("username and password are not supported")
	case len(u.AuthProvider) > 0 && string(u.AuthProvider) != "null":
		return errors.New("the stand-in signs in at no auth-provider")
	case u.CertFile != "" && u.CertData == "":
		return noFile(u.CertFile)
	case u.KeyFile != "" && u.KeyData == "":
		return noFile(u.KeyFile)
	}
	config.BearerToken = u.Token // a tokenFile is not looked at: without a token the caller is anonymous
	if err := decode(u.CertData, "client-certificate-data", &config.CertData); err != nil {
		return err
	}
	return decode(u.KeyData, "client-key-data", &config.KeyData)
}

func noFile(name string) error {
	return fmt.Errorf("[Errno 2] No such file or directory: '%s'", name)
}

// decode puts the base64 of a key into out.
func decode(text, key string, out *[]byte) error {
	if text == "" {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return fmt.Errorf("%s is not base64", key)
	}
	*out = data
	return nil
}
