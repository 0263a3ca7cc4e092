// How Renku reads the kubeconfig of a remote cluster (k8s/config.py from_kubeconfig_file; kr8s: kr8s/_auth.py,
// kr8s/_config.py). Renku sends no request to the cluster while it loads the kubeconfig. Files that a kubeconfig
// references do not exist in Renku's pods. A CA or certificate file causes an error at the first request, when kr8s
// creates its TLS context. A credential plugin fails immediately, because it is not in the image. This fake never
// opens such a file and never runs a plugin.

package renkuapi

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
)

// kubeFile contains the fields of a kubeconfig that Renku reads. Pointers distinguish missing fields from empty ones.
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

type kubeconfig struct{ file kubeFile }

func readKubeconfig(data []byte) (*kubeconfig, error) {
	text, err := yaml.ToJSON(data)
	if err != nil {
		return nil, errors.New("the file is not YAML")
	}
	anything := map[string]json.RawMessage{}
	if json.Unmarshal(text, &anything) != nil || anything == nil {
		return nil, errors.New("ConfigurationError: the kubeconfig is not a mapping")
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

// connect returns the connection for the current context. Its errors imitate Python's. For example, the error for a
// missing key is the key in quotes.
func (k *kubeconfig) connect() (*connection, error) {
	switch {
	case k.file.Current == nil:
		return nil, errors.New("'current-context'")
	case *k.file.Current == "":
		//lint:ignore ST1005 verbatim error of Renku's Python code
		return nil, errors.New("Context  not found")
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
		return &connection{
			config: config, namespace: namespace, broken: k.lacksFiles(*c.Context.Cluster, *c.Context.User),
		}, nil
	}
	//lint:ignore ST1005 verbatim error of Renku's Python code
	return nil, fmt.Errorf("No such context %s", *k.file.Current)
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
		//lint:ignore ST1005 verbatim error of Renku's Python code
		return nil, fmt.Errorf("Cluster %s not found", cluster)
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
	//lint:ignore ST1005 verbatim error of Renku's Python code
	return nil, fmt.Errorf("User %s not found", user)
}

// lacksFiles reports whether the TLS context requires a file: a CA, or a client certificate and its key. A certificate
// without a key, or a key without a certificate, is ignored.
func (k *kubeconfig) lacksFiles(cluster, user string) bool {
	for _, c := range k.file.Clusters {
		if c.Name == cluster && c.Cluster.CAFile != "" && c.Cluster.CAData == "" {
			return true
		}
	}
	for _, u := range k.file.Users {
		cert, key := u.User.CertData+u.User.CertFile, u.User.KeyData+u.User.KeyFile
		if u.Name == user && cert != "" && key != "" && (u.User.CertData == "" || u.User.KeyData == "") {
			return true
		}
	}
	return false
}

// trust resets insecure-skip-tls-verify if the kubeconfig has neither a CA nor a client certificate. kr8s then does not
// create its own TLS context.
func trust(config *rest.Config) {
	if len(config.CAData) == 0 && len(config.CertData) == 0 {
		config.Insecure = false
	}
	if config.Insecure {
		config.CAData = nil // client-go rejects a CA with insecure-skip-tls-verify
	}
}

func (c kubeCluster) apply(config *rest.Config) error {
	if c.Server == "" {
		return errors.New("'server'")
	}
	config.Host, config.ServerName, config.Insecure = c.Server, c.Name, c.Insecure
	return decode(c.CAData, &config.CAData)
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
		return errors.New("the stand-in does not support auth-provider")
	}
	config.BearerToken = u.Token // tokenFile is ignored: without a token the caller is anonymous
	if err := decode(u.CertData, &config.CertData); err != nil {
		return err
	}
	return decode(u.KeyData, &config.KeyData)
}

func noFile(name string) error {
	return fmt.Errorf("[Errno 2] No such file or directory: '%s'", name)
}

// decode decodes a base64 field. Like Python, it skips characters outside of the alphabet. It copies PEM unchanged.
func decode(text string, out *[]byte) error {
	if text == "" || strings.Contains(text, "-----") {
		*out = []byte(text)
		return nil
	}
	digits := strings.Map(func(c rune) rune {
		if c < 128 && strings.ContainsRune(alphabet, c) {
			return c
		}
		return -1
	}, text)
	data, err := base64.StdEncoding.DecodeString(digits)
	if err != nil {
		//lint:ignore ST1005 verbatim error of Renku's Python code
		return errors.New("Incorrect padding")
	}
	*out = append(data, '\n') // never empty, because client-go ignores an empty CA
	return nil
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
