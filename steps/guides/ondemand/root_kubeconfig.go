package ondemand

import (
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"

	"carrick/cluster/clean"
	"carrick/cluster/masked"
	"carrick/cluster/probe"
	"carrick/steps/check"
)

// Names of the cluster and the user in root's kubeconfig, as in the published guide.
const (
	rootCluster = "kubernetes"
	rootUser    = "ondemand@kubernetes"
)

// encodeRootKubeconfig returns root's kubeconfig. The kubeconfig refers to the token file, so it contains no secret and
// a renewal does not change it.
func encodeRootKubeconfig(server string) (masked.Value, error) {
	if err := validServer(server); err != nil {
		return masked.Value{}, fmt.Errorf("cluster.server: %w", err)
	}
	type object = map[string]any
	type named = []object
	data, err := yaml.Marshal(struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
		Current    string `yaml:"current-context"`
		Clusters   named  `yaml:"clusters"`
		Users      named  `yaml:"users"`
		Contexts   named  `yaml:"contexts"`
	}{
		"v1", "Config", rootUser,
		named{{"name": rootCluster, "cluster": object{"server": server, "certificate-authority": clusterCA}}},
		named{{"name": rootUser, "user": object{"tokenFile": rootToken}}},
		named{{"name": rootUser, "context": object{"cluster": rootCluster, "user": rootUser}}},
	})
	head := "# Root's kubeconfig for Open OnDemand, written by carrick. A token renewal does not change it.\n"
	return masked.New(head + string(data)), err
}

func validServer(server string) error {
	u, err := url.Parse(server)
	switch {
	case err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		strings.ContainsAny(server, "\r\n \t"):
		return fmt.Errorf("%q is not the URL of an API server", clean.Text(server))
	case u.Scheme != "https":
		return fmt.Errorf("%q is not an https URL", clean.Text(server))
	}
	return nil
}

// wayIn contains the server and the credentials of a kubeconfig's current context.
type wayIn struct {
	Context, Server string
	CAFile          string
	CA              []byte // inline PEM; takes precedence over CAFile
	Token           masked.Value
	TokenFile       string
	Plugin          string     // command or auth provider that supplies credentials
	Certificate     *pkix.Name // subject of the inline client certificate; nil if there is none
	CertificateFile string
	As              string
}

// readWayIn parses the kubeconfig data. Its errors contain no credentials.
func readWayIn(data []byte) (wayIn, error) {
	k, err := check.ReadLoosely(data)
	if err != nil || k.Misshapen {
		return wayIn{}, errors.New("not a kubeconfig: the YAML is invalid or has another structure")
	}
	if k.Current == "" {
		return wayIn{}, errors.New("current-context is not set, and the hooks do not select a context")
	}
	c, found := k.Context(k.Current)
	if !found {
		return wayIn{}, fmt.Errorf("current-context is %q, but that context does not exist", clean.Text(k.Current))
	}
	at, _ := k.Cluster(c.Cluster)
	if at.Server == "" {
		return wayIn{}, fmt.Errorf("context %q has no server", clean.Text(k.Current))
	}
	u := k.User(c.User)
	in := wayIn{
		Context: k.Current, Server: at.Server, CAFile: at.CAFile, CA: decoded(at.CAData),
		Token: masked.New(u.Token), TokenFile: u.TokenFile, CertificateFile: u.CertFile, As: u.As,
		Plugin: u.Exec.Command, Certificate: subjectOf(u.Cert),
	}
	if u.AuthProvider.Name != "" {
		in.Plugin = "auth-provider " + u.AuthProvider.Name
	}
	return in, nil
}

// subjectOf returns the subject of data, a base64-encoded client certificate. It returns nil if the certificate is
// invalid.
func subjectOf(data string) *pkix.Name {
	certs, err := probe.ParseCerts(decoded(data))
	if err != nil {
		return nil
	}
	return &certs[0].Subject
}

// decoded returns nil if data is empty or not valid base64.
func decoded(data string) []byte {
	out, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(data), ""))
	if err != nil || len(out) == 0 {
		return nil
	}
	return out
}
