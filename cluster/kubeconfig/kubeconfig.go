package kubeconfig

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	_ "k8s.io/client-go/plugin/pkg/client/auth/oidc"
	"k8s.io/client-go/rest"

	"carrick/cluster/masked"
)

// Config is the content of a self-contained kubeconfig with one context. It refers to no file, no command and no other
// machine.
type Config struct {
	Name          string // name of the context
	Server        string // https URL
	CA            []byte // PEM; nil: the system's roots
	TLSServerName string // name for which the server's certificate must be valid; "": the host in Server
	ProxyURL      string
	Namespace     string // "": the context has none
	Token         masked.Value
	ClientCert    []byte       // PEM
	ClientKey     masked.Value // PEM
}

// Error lists all problems of a kubeconfig, ordered by line. It has at least one problem.
type Error struct{ Problems []Problem }

// Problem is one rule that a kubeconfig violates.
type Problem struct {
	Rule   string // one of the Rule constants
	Detail string // location and description; never a secret value
}

// The rules that Parse enforces.
const (
	RuleTooLarge         = "too-large"          // more than 1 MiB
	RuleNotYAML          = "not-yaml"           // not YAML, or its top level is not a mapping
	RuleSeveralDocuments = "several-documents"  // more than one YAML document
	RuleAlias            = "alias"              // a YAML alias
	RuleDuplicateKey     = "duplicate-key"      // a duplicate key in one mapping
	RuleUnknownKey       = "unknown-key"        // a key that kubeconfigs do not have
	RuleWrongType        = "wrong-type"         // for example, a list where a string is expected
	RuleWrongKind        = "wrong-kind"         // apiVersion or kind other than v1, Config
	RuleDuplicateName    = "duplicate-name"     // two contexts, clusters or users with the same name
	RuleNoName           = "no-name"            // a context, cluster or user without a name
	RuleNoCurrentContext = "no-current-context" // current-context is absent or empty
	RuleUnknownContext   = "unknown-context"    // current-context names none of the contexts
	RuleNoCluster        = "no-cluster"         // the context names no cluster, or one that does not exist
	RuleNoUser           = "no-user"            // the context names no user, or one that does not exist
	RuleNoServer         = "no-server"          // the cluster has no server
	RuleBadServer        = "bad-server"         // the server is not a URL with a host
	RuleNotHTTPS         = "not-https"          // the server's URL is not https
	RuleInsecure         = "insecure"           // insecure-skip-tls-verify
	RuleBadCA            = "bad-ca"             // certificate-authority-data contains no certificate
	RuleBadProxy         = "bad-proxy"          // proxy-url is not a proxy, or contains a password
	RuleFileReference    = "file-reference"     // certificate-authority, client-certificate, client-key, tokenFile
	RuleExec             = "exec"               // a command to run
	RuleAuthProvider     = "auth-provider"      // the deprecated auth-provider plugin
	RuleBasicAuth        = "basic-auth"         // username, password
	RuleImpersonation    = "impersonation"      // as, as-uid, as-groups, as-user-extra
	RuleNoCredentials    = "no-credentials"     // neither a token nor a client certificate
	RuleBadToken         = "bad-token"          // characters that are invalid in a token
	RuleBadClientCert    = "bad-client-cert"    // no certificate, no key, or they do not match
	RuleDoubleBase64     = "double-base64"      // base64-encoded twice
)

// Error returns the problems in one line.
func (e Error) Error() string {
	details := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		details[i] = p.Detail
	}
	return "kubeconfig: " + strings.Join(details, "; ")
}

// Has reports whether the kubeconfig violates a rule.
func (e Error) Has(rule string) bool {
	for _, p := range e.Problems {
		if p.Rule == rule {
			return true
		}
	}
	return false
}

// Bytes returns a self-contained kubeconfig whose current context is set. Equal Configs return equal bytes. If the
// Config is valid, Parse returns an equal Config from the bytes. An empty Name becomes "carrick".
func (k Config) Bytes() masked.Value {
	name, encode := cmp.Or(k.Name, "carrick"), base64.StdEncoding.EncodeToString
	file := document{APIVersion: "v1", Kind: "Config", CurrentContext: name}
	file.Clusters[0].Name, file.Contexts[0].Name, file.Users[0].Name = name, name, name
	cluster, context, user := &file.Clusters[0].Cluster, &file.Contexts[0].Context, &file.Users[0].User
	cluster.Server, cluster.CA, cluster.TLSServerName, cluster.ProxyURL = k.Server, encode(k.CA), k.TLSServerName, k.ProxyURL
	context.Cluster, context.User, context.Namespace = name, name, k.Namespace
	user.Token, user.ClientCert, user.ClientKey = k.Token.Reveal(), encode(k.ClientCert), encode(
		[]byte(k.ClientKey.Reveal()),
	)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	// Encoding a struct of strings into a buffer cannot fail.
	_, _ = encoder.Encode(file), encoder.Close()
	return masked.New(out.String())
}

// document is a kubeconfig with one context, one cluster and one user. The keys are in the usual order.
type document struct {
	APIVersion     string `yaml:"apiVersion"`
	Kind           string `yaml:"kind"`
	CurrentContext string `yaml:"current-context"`
	Clusters       [1]struct {
		Name    string `yaml:"name"`
		Cluster struct {
			Server        string `yaml:"server"`
			CA            string `yaml:"certificate-authority-data,omitempty"`
			TLSServerName string `yaml:"tls-server-name,omitempty"`
			ProxyURL      string `yaml:"proxy-url,omitempty"`
		} `yaml:"cluster"`
	} `yaml:"clusters"`
	Contexts [1]struct {
		Name    string `yaml:"name"`
		Context struct {
			Cluster   string `yaml:"cluster"`
			User      string `yaml:"user"`
			Namespace string `yaml:"namespace,omitempty"`
		} `yaml:"context"`
	} `yaml:"contexts"`
	Users [1]struct {
		Name string `yaml:"name"`
		User struct {
			Token      string `yaml:"token,omitempty"`
			ClientCert string `yaml:"client-certificate-data,omitempty"`
			ClientKey  string `yaml:"client-key-data,omitempty"`
		} `yaml:"user"`
	} `yaml:"users"`
}

// limit is the maximum size of a kubeconfig in bytes. Real kubeconfigs are much smaller.
const limit = 1 << 20

// Parse reads a kubeconfig from another user strictly. It rejects a kubeconfig that would run a command, read a file,
// send a password or connect to an unverified server, even if the current context does not use the entry. It also
// rejects ambiguous kubeconfigs. It uses no file, no network and no environment variables. The error is an Error that
// lists all problems at once.
func Parse(data []byte) (Config, error) {
	p := parser{}
	k := p.parse(data)
	if len(p.problems) > 0 {
		return Config{}, Error{Problems: p.sorted()}
	}
	return k, nil
}

// atLine returns the prefix of a Detail with the line of a node: "line 3: ".
func atLine(n *yaml.Node) string { return fmt.Sprintf("line %d: ", n.Line) }

// RESTConfig returns the rest.Config for a parsed kubeconfig.
func RESTConfig(k Config) *rest.Config {
	return &rest.Config{
		Host:        k.Server,
		BearerToken: k.Token.Reveal(),
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: k.TLSServerName,
			CAData:     k.CA,
			CertData:   k.ClientCert,
			KeyData:    []byte(k.ClientKey.Reveal()),
		},
	}
}
